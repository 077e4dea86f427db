import ATProtocol
import IPLD

/// Writes the records of one account, in the order of time.
struct RecordFactory {
  /// What the records are, in percent.
  struct Mix {
    /// How many of the records are posts; the rest are likes, follows and reposts, as 50 to 15 to
    /// 10.
    var posts = 25
    /// How many of the posts carry images.
    var images = 12
    /// How many images those posts carry.
    var imagesPerPost = 1...4
  }

  /// A record, with its collection.
  struct Written {
    let collection: Collection
    let value: IPLDValue
  }

  /// The account.
  let did: String
  /// The blobs.
  private(set) var blobs: BlobFactory

  private let mix: Mix
  /// The accounts it knows, those it has known longest first.
  private var authors: [String]
  private var writer = PostWriter()
  /// The account's own last posts, to which it sometimes replies.
  private var thread: (root: IPLDValue, parent: IPLDValue)?

  /// A factory for one account.
  init(mix: Mix, blobs: BlobFactory, random: inout SeededRandom) {
    self.mix = mix
    self.blobs = blobs
    did = "did:plc:\(random.base32(24))"
    authors = (0..<50).map { _ in "did:plc:\(random.base32(24))" }
  }

  /// The profile, of which there is one.
  mutating func profile(_ clock: Clock, _ random: inout SeededRandom) throws -> IPLDValue {
    let language = Language.all[0]
    return .map([
      "$type": .string(Collection.profile.rawValue),
      "avatar": try blobs.reference("image/jpeg", &random),
      "banner": try blobs.reference("image/jpeg", &random),
      "createdAt": .string(clock.text),
      "description": .string(language.text(length: 180, &random)),
      "displayName": .string(language.text(length: 14, &random)),
    ])
  }

  /// The record that comes next.
  mutating func next(_ clock: Clock, _ random: inout SeededRandom) throws -> Written {
    let createdAt = IPLDValue.string(clock.text)
    if random.chance(mix.posts) {
      let value = try post(createdAt, clock, &random)
      return Written(collection: .post, value: value)
    }
    switch random.below(75) {
    case 0..<50: return reaction(.like, createdAt, clock, &random)
    case 50..<60: return reaction(.repost, createdAt, clock, &random)
    default:
      authors.append("did:plc:\(random.base32(24))")
      let value: IPLDValue = .map([
        "$type": .string(Collection.follow.rawValue),
        "subject": .string(authors[authors.count - 1]), "createdAt": createdAt,
      ])
      return Written(collection: .follow, value: value)
    }
  }

  /// Tells the factory where its last post went, so that the next may reply to it.
  mutating func posted(_ key: TID, _ cid: CID) {
    let reference = Self.reference(did, key, cid)
    thread = (thread?.root ?? reference, reference)
  }

  private func reaction(
    _ collection: Collection, _ createdAt: IPLDValue, _ clock: Clock, _ random: inout SeededRandom
  ) -> Written {
    Written(
      collection: collection,
      value: .map([
        "$type": .string(collection.rawValue), "subject": somePost(clock, &random),
        "createdAt": createdAt,
      ]))
  }

  private mutating func post(
    _ createdAt: IPLDValue, _ clock: Clock, _ random: inout SeededRandom
  ) throws -> IPLDValue {
    var post = writer.text(authors, &random)
    post["$type"] = .string(Collection.post.rawValue)
    post["createdAt"] = createdAt
    if random.chance(31) {
      post["reply"] = reply(clock, &random)
    } else {
      thread = nil
    }
    if random.chance(mix.images) {
      post["embed"] = try images(&random)
    } else {
      switch random.below(100) {
      case 0..<8: post["embed"] = try external(&random)
      case 8..<13:
        post["embed"] = .map([
          "$type": .string("app.bsky.embed.record"), "record": somePost(clock, &random),
        ])
      case 13: post["embed"] = try video(&random)
      default: break
      }
    }
    return .map(post)
  }

  private func reply(_ clock: Clock, _ random: inout SeededRandom) -> IPLDValue {
    if let thread, random.chance(25) {
      return .map(["root": thread.root, "parent": thread.parent])
    }
    let root = somePost(clock, &random)
    return .map(["root": root, "parent": random.chance(45) ? root : somePost(clock, &random)])
  }

  private mutating func images(_ random: inout SeededRandom) throws -> IPLDValue {
    var images: [IPLDValue] = []
    for _ in 0..<random.number(in: mix.imagesPerPost) {
      let described = random.chance(40)
      images.append(
        .map([
          "alt": .string(
            described ? random.pick(Language.all).text(length: 20 + random.below(160), &random) : ""
          ),
          "image": try blobs.reference("image/jpeg", &random),
          "aspectRatio": Self.aspectRatio(&random),
        ]))
    }
    return .map(["$type": .string("app.bsky.embed.images"), "images": .array(images)])
  }

  private mutating func external(_ random: inout SeededRandom) throws -> IPLDValue {
    let language = random.pick(Language.all)
    var card: IPLDMap = [
      "uri": .string(writer.link(&random)),
      "title": .string(language.text(length: 20 + random.below(60), &random)),
      "description": .string(language.text(length: random.below(200), &random)),
    ]
    if random.chance(70) { card["thumb"] = try blobs.reference("image/jpeg", &random) }
    return .map(["$type": .string("app.bsky.embed.external"), "external": .map(card)])
  }

  private mutating func video(_ random: inout SeededRandom) throws -> IPLDValue {
    .map([
      "$type": .string("app.bsky.embed.video"),
      "video": try blobs.reference("video/mp4", &random),
      "aspectRatio": Self.aspectRatio(&random),
    ])
  }

  private static func aspectRatio(_ random: inout SeededRandom) -> IPLDValue {
    let (width, height) = random.pick([
      (2000, 1500), (1500, 2000), (1080, 1920), (1920, 1080), (1200, 1200),
      (random.number(in: 400...2000), random.number(in: 400...2000)),
    ])
    return .map(["width": .integer(Int128(width)), "height": .integer(Int128(height))])
  }

  /// A reference to somebody else's post.
  private func somePost(_ clock: Clock, _ random: inout SeededRandom) -> IPLDValue {
    Self.reference(
      somebody(&random), clock.earlierTID(&random), random.cid(.dagCBOR))
  }

  /// An account it knows: one of its friends in half of the cases.
  private func somebody(_ random: inout SeededRandom) -> String {
    random.chance(50) ? authors[random.ranked(below: 50)] : random.pickRanked(authors)
  }

  private static func reference(_ did: String, _ key: TID, _ cid: CID) -> IPLDValue {
    .map([
      "uri": .string("at://\(did)/\(Collection.post.rawValue)/\(key.text)"),
      "cid": .string(cid.description),
    ])
  }
}

/// The collections there are, in the order of the tree.
enum Collection: String, CaseIterable {
  case profile = "app.bsky.actor.profile"
  case like = "app.bsky.feed.like"
  case post = "app.bsky.feed.post"
  case repost = "app.bsky.feed.repost"
  case follow = "app.bsky.graph.follow"
}
