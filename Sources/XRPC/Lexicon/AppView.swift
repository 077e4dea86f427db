package import ATProtocol
package import IPLD

// Methods of `app.bsky` that an app view answers without a login.

/// An account as an app view shows it.
package struct ProfileView: Sendable, Equatable {
  package let did: DID
  package let handle: Handle?
  package let displayName: String?
  package let description: String?
  /// The URL of a small picture.
  package let avatar: String?
  /// Whether its owner wants it shown to logged-in users only.
  package let isWithheld: Bool

  /// The most bytes of a text about an account: the lexicon has 2,560.
  private static let maximumText = 8 << 10
  /// The most bytes of a URL.
  fileprivate static let maximumURL = 2 << 10
  /// The label by which owners ask that it is not shown without a login.
  private static let withheld = "!no-unauthenticated"

  /// Reads a view; nil if it names no DID.
  init?(_ value: IPLDValue) {
    let answer = Answer(value)
    guard let did = answer.optionalIdentifier("did", DID.self) else { return nil }
    func text(_ key: String, _ limit: Int = Self.maximumText) -> String? {
      value[key]?.string.flatMap { $0.isEmpty || $0.utf8.count > limit ? nil : $0 }
    }
    self.did = did
    handle = answer.optionalIdentifier("handle", Handle.self)
    (displayName, description) = (text("displayName"), text("description"))
    avatar = text("avatar", Self.maximumURL)
    isWithheld = (value["labels"]?.array ?? []).contains { label in
      label["val"]?.string == Self.withheld && Answer(label).flag("neg") != true
    }
  }
}

/// A post as an app view shows it.
package struct PostView: Sendable, Equatable {
  package let uri: ATURI
  package let cid: CID
  package let author: ProfileView
  package let record: IPLDValue
  /// The URLs of small pictures.
  package let thumbnails: [String]

  /// The most pictures that are taken of a post: the lexicon has four.
  private static let maximumThumbnails = 4

  /// Reads a view; nil if it is not one of a post, or of another author than its URI names.
  init?(_ value: IPLDValue) {
    let answer = Answer(value)
    guard let uri = answer.optionalIdentifier("uri", ATURI.self), uri.path != nil,
      let cid = answer.optionalCID("cid"), let author = value["author"].flatMap(ProfileView.init),
      uri.authority == .did(author.did), let record = value["record"], record.map != nil
    else { return nil }
    (self.uri, self.cid, self.author, self.record) = (uri, cid, author, record)
    let embed = value["embed"]
    thumbnails = Array(
      [embed, embed?["media"]].flatMap(Self.pictures).filter {
        $0.utf8.count <= ProfileView.maximumURL
      }.prefix(Self.maximumThumbnails))
  }

  /// The URLs of the pictures of an embed: of images, of a link, of a video.
  private static func pictures(_ embed: IPLDValue?) -> [String] {
    guard let embed else { return [] }
    let images = embed["images"]?.array ?? []
    return images.compactMap { $0["thumb"]?.string }
      + [embed["external"]?["thumb"]?.string, embed["thumbnail"]?.string].compactMap(\.self)
  }
}

extension XRPCQuery<[ProfileView]> {
  /// `app.bsky.actor.getProfiles`: accounts as they are shown without a login; those that are not
  /// shown are left out.
  ///
  /// - Parameter accounts: at most ``XRPCCall/maximumSubjects``.
  package static func getProfiles(_ accounts: [DID]) -> XRPCQuery {
    XRPCQuery(
      XRPCCall(get: "app.bsky.actor.getProfiles", accounts.map { ("actors", $0.text) })
        .with { $0.seconds = XRPCCall.patience }
    ) { answer throws(AnswerFault) in
      try answer.items("profiles").compactMap { ProfileView($0) }
    }
  }
}

extension XRPCQuery<[PostView]> {
  /// `app.bsky.feed.getPosts`: posts as they are shown without a login; those that are not shown
  /// are left out.
  ///
  /// - Parameter posts: at most ``XRPCCall/maximumSubjects``.
  package static func getPosts(_ posts: [ATURI]) -> XRPCQuery {
    XRPCQuery(
      XRPCCall(get: "app.bsky.feed.getPosts", posts.map { ("uris", $0.text) })
        .with { $0.seconds = XRPCCall.patience }
    ) { answer throws(AnswerFault) in
      try answer.items("posts").compactMap { PostView($0) }
    }
  }
}

extension XRPCCall {
  /// How many subjects one request may name, by the lexicons.
  package static let maximumSubjects = 25
  /// How many seconds an app view is waited for: what it shows is no part of a backup.
  fileprivate static let patience = 120.0
}
