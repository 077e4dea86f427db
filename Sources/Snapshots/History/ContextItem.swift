package import ATProtocol
package import IPLD

/// What an app view showed of others: a person or a post, where and when it was seen (FORMAT 6.7).
///
/// 1. Nothing of it is the account's own, and nothing is signed unless it has a proof.
/// 2. Records and CIDs of others are text, so that nothing takes them for blocks of the archive.
package struct ContextItem: Equatable, Sendable {
  /// What an item is about.
  package enum Subject: Hashable, Sendable {
    /// An account.
    case person(DID)
    /// A post of another account.
    case post(ATURI)

    /// The DID or the AT URI.
    package var text: String {
      switch self {
      case .person(let did): did.text
      case .post(let uri): uri.text
      }
    }
  }

  /// What was shown.
  package enum Content: Equatable, Sendable {
    case person(Person)
    case post(Post)
    /// Nothing.
    case absent(Absence)
  }

  /// Why the app view showed nothing.
  package enum Absence: String, CaseIterable, Sendable {
    /// It does not know the subject, or does not show it.
    case notFound = "not-found"
    /// The author wants it shown to logged-in users only (label `!no-unauthenticated`).
    case withheld
    /// It is longer than an item may be.
    case tooLarge = "too-large"
  }

  /// An account as the app view showed it.
  package struct Person: Equatable, Sendable {
    package var handle: Handle?
    package var displayName: String?
    package var description: String?
    package var avatar: Thumbnail?
    package init() {}
  }

  /// A post as the app view showed it.
  package struct Post: Equatable, Sendable {
    /// The CID that the app view names.
    package var cid: CID
    /// The record in AT Protocol's JSON.
    package var record: String
    package var thumbnails: [Thumbnail] = []
    /// The pieces that prove that the record is the author's; nil if there are none.
    package var proof: Proof?
    /// When the last request for a proof failed, in RFC 3339 and UTC; nil if none did.
    package var unprovenAt: String?
    package init(cid: CID, record: String) { (self.cid, self.record) = (cid, record) }
  }

  /// The pieces of a proof (``ContextProof``).
  package struct Proof: Equatable, Sendable {
    /// The CAR of `com.atproto.sync.getRecord`.
    package let car: CID
    /// The author's DID document.
    package let document: CID
    package init(car: CID, document: CID) { (self.car, self.document) = (car, document) }
  }

  /// A small picture, as the app view serves it: not the original.
  package struct Thumbnail: Equatable, Sendable {
    /// The piece that has its bytes.
    package let piece: CID
    /// The URL it came from.
    package let source: String
    package init(_ piece: CID, from source: String) { (self.piece, self.source) = (piece, source) }
  }

  package let subject: Subject
  package var content: Content
  /// The app view, by its URL.
  package let seenFrom: String
  /// When the content was seen, in RFC 3339 and UTC.
  package let seenAt: String
  /// When the app view was last asked, in RFC 3339 and UTC.
  package var askedAt: String
  /// The URLs of pictures that could not be fetched yet.
  package var owed: [String] = []

  /// What was seen now.
  package init(_ subject: Subject, _ content: Content, from seenFrom: String, at seenAt: String) {
    (self.subject, self.content) = (subject, content)
    (self.seenFrom, self.seenAt, askedAt) = (seenFrom, seenAt, seenAt)
  }

  /// Whether nothing was shown.
  package var isAbsent: Bool { if case .absent = content { true } else { false } }

  /// The pieces that belong to it.
  package var pieces: [CID] {
    switch content {
    case .person(let person): person.avatar.map { [$0.piece] } ?? []
    case .post(let post):
      post.thumbnails.map(\.piece) + (post.proof.map { [$0.car, $0.document] } ?? [])
    case .absent: []
    }
  }

  /// Adds pictures that were fetched later.
  package mutating func add(_ pictures: [Thumbnail]) {
    switch content {
    case .person(var person):
      person.avatar = pictures.last ?? person.avatar
      content = .person(person)
    case .post(var post):
      post.thumbnails += pictures
      content = .post(post)
    case .absent: break
    }
  }

  /// The item without the pieces that are lost; pictures are requested again.
  package func keeping(_ isKept: (CID) throws -> Bool) rethrows -> ContextItem {
    var item = self
    switch content {
    case .person(var person):
      if let avatar = person.avatar, try !isKept(avatar.piece) {
        item.owed.append(avatar.source)
        person.avatar = nil
      }
      item.content = .person(person)
    case .post(var post):
      for picture in post.thumbnails where try !isKept(picture.piece) {
        item.owed.append(picture.source)
      }
      post.thumbnails.removeAll { item.owed.contains($0.source) }
      if let proof = post.proof, try !isKept(proof.car) || !isKept(proof.document) {
        post.proof = nil
      }
      item.content = .post(post)
    case .absent: break
    }
    return item
  }
}

// MARK: As a map

extension ContextItem {
  var map: IPLDMap {
    var map: IPLDMap = ["seenFrom": .string(seenFrom), "seenAt": .string(seenAt)]
    if askedAt != seenAt { map["askedAt"] = .string(askedAt) }
    if !owed.isEmpty { map["owed"] = .array(owed.map { .string($0) }) }
    switch subject {
    case .person(let did): map["person"] = .string(did.text)
    case .post(let uri): map["post"] = .string(uri.text)
    }
    switch content {
    case .person(let person):
      map["handle"] = person.handle.map { .string($0.text) }
      map["displayName"] = person.displayName.map { .string($0) }
      map["description"] = person.description.map { .string($0) }
      map["avatar"] = person.avatar?.value
    case .post(let post):
      map["cid"] = .string("\(post.cid)")
      map["record"] = .string(post.record)
      if !post.thumbnails.isEmpty { map["thumbnails"] = .array(post.thumbnails.map(\.value)) }
      map["proof"] = post.proof.map {
        .map(["car": .link($0.car), "document": .link($0.document)])
      }
      map["unprovenAt"] = post.unprovenAt.map { .string($0) }
    case .absent(let absence): map["absent"] = .string(absence.rawValue)
    }
    return map
  }

  /// Reads an item; nil if it is malformed.
  init?(_ value: IPLDValue) {
    guard let seenFrom = value["seenFrom"]?.string, let seenAt = value["seenAt"]?.string,
      let subject = Subject(value)
    else { return nil }
    let content: Content
    if let absent = value["absent"] {
      guard let word = absent.string else { return nil }
      // A reason of a later version says at least that there is nothing.
      content = .absent(Absence(rawValue: word) ?? .notFound)
    } else if case .person = subject {
      guard let person = Person(value) else { return nil }
      content = .person(person)
    } else {
      guard let post = Post(value) else { return nil }
      content = .post(post)
    }
    self.init(subject, content, from: seenFrom, at: seenAt)
    if let asked = value["askedAt"] {
      guard let time = asked.string else { return nil }
      askedAt = time
    }
    if let field = value["owed"] {
      guard let items = field.array else { return nil }
      owed = items.compactMap(\.string)
      guard owed.count == items.count else { return nil }
    }
  }
}

extension ContextItem.Subject {
  fileprivate init?(_ value: IPLDValue) {
    switch (value["person"], value["post"]) {
    case (let person?, nil):
      guard let did = DID.read(person) else { return nil }
      self = .person(did)
    case (nil, let post?):
      guard let uri = ATURI.read(post), uri.path != nil, case .did = uri.authority else {
        return nil
      }
      self = .post(uri)
    default: return nil
    }
  }
}

extension ContextItem.Person {
  fileprivate init?(_ value: IPLDValue) {
    for (key, path) in [("displayName", \Self.displayName), ("description", \Self.description)] {
      guard let field = value[key] else { continue }
      guard let text = field.string else { return nil }
      self[keyPath: path] = text
    }
    if let field = value["handle"] {
      guard let handle = Handle.read(field) else { return nil }
      self.handle = handle
    }
    if let field = value["avatar"] {
      guard let avatar = ContextItem.Thumbnail(field) else { return nil }
      self.avatar = avatar
    }
  }
}

extension ContextItem.Post {
  fileprivate init?(_ value: IPLDValue) {
    guard let cid = value["cid"]?.string.flatMap(CID.read(text:)),
      let record = value["record"]?.string
    else { return nil }
    self.init(cid: cid, record: record)
    if let field = value["thumbnails"] {
      guard let items = field.array else { return nil }
      thumbnails = items.compactMap { ContextItem.Thumbnail($0) }
      guard thumbnails.count == items.count else { return nil }
    }
    if let field = value["proof"] {
      guard let car = field["car"]?.link, let document = field["document"]?.link else { return nil }
      proof = ContextItem.Proof(car: car, document: document)
    }
    if let field = value["unprovenAt"] {
      guard let time = field.string else { return nil }
      unprovenAt = time
    }
  }
}

extension ContextItem.Thumbnail {
  fileprivate var value: IPLDValue { .map(["piece": .link(piece), "from": .string(source)]) }

  fileprivate init?(_ value: IPLDValue) {
    guard let piece = value["piece"]?.link, let source = value["from"]?.string else { return nil }
    self.init(piece, from: source)
  }
}

extension CID {
  /// The CID in a text; nil if it is not one.
  fileprivate static func read(text: String) -> CID? {
    do throws(CIDError) { return try CID(text) } catch { return nil }
  }
}
