internal import ATProtocol
internal import IPLD
internal import Snapshots

/// The people and posts of others that an account's records point to.
///
/// It keeps as many as are wanted, those of the newest records: an account may have millions.
struct ContextSubjects {
  private let account: DID
  private let limit: Int
  private let takesPosts: Bool
  /// When the newest record that points to each was made, as the record says.
  private var times: [ContextItem.Subject: String] = [:]
  /// How many were dropped because there are more than the limit.
  private(set) var leftOutCount = 0

  /// How many more than the limit are kept before the oldest are dropped.
  private static let slack = 10_000

  /// No subjects yet.
  ///
  /// - Parameters:
  ///   - account: whose records are read; what points to itself is left out.
  ///   - limit: how many are kept.
  ///   - takesPosts: whether posts are wanted, too.
  init(of account: DID, limit: Int, takesPosts: Bool) {
    (self.account, self.limit, self.takesPosts) = (account, limit, takesPosts)
  }

  /// The subjects, those of the newest records first.
  mutating func newestFirst() -> [ContextItem.Subject] {
    drop(to: limit)
    return sorted()
  }

  private func sorted() -> [ContextItem.Subject] {
    times.sorted { ($1.value, $0.key.text) < ($0.value, $1.key.text) }.map(\.key)
  }

  private mutating func drop(to count: Int) {
    guard times.count > count else { return }
    leftOutCount += times.count - count
    for subject in sorted()[count...] { times[subject] = nil }
  }

  /// Reads what a block points to, if it is a record of a kind that points to others.
  mutating func read(_ block: Span<UInt8>) {
    let record: IPLDValue
    do throws(DAGCBORError) { record = try DAGCBORDecoder.decode(block) } catch {
      // A block that is not a record has no references.
      return
    }
    guard let type = record["$type"]?.string else { return }
    let time = record["createdAt"]?.string ?? ""
    switch type {
    case "app.bsky.feed.like", "app.bsky.feed.repost": add(record["subject"], at: time)
    case "app.bsky.graph.follow", "app.bsky.graph.block", "app.bsky.graph.listitem":
      add(person: record["subject"]?.string, at: time)
    case "app.bsky.feed.post": readPost(record, at: time)
    default: break
    }
  }

  private mutating func readPost(_ post: IPLDValue, at time: String) {
    add(post["reply"]?["parent"], at: time)
    add(post["reply"]?["root"], at: time)
    switch post["embed"]?["$type"]?.string {
    case "app.bsky.embed.record": add(post["embed"]?["record"], at: time)
    case "app.bsky.embed.recordWithMedia": add(post["embed"]?["record"]?["record"], at: time)
    default: break
    }
    for facet in post["facets"]?.array ?? [] {
      for feature in facet["features"]?.array ?? []
      where feature["$type"]?.string == "app.bsky.richtext.facet#mention" {
        add(person: feature["did"]?.string, at: time)
      }
    }
  }

  /// Adds what a strong reference leads to, and its author.
  private mutating func add(_ reference: IPLDValue?, at time: String) {
    guard let text = reference?["uri"]?.string, let uri = ATURI.parsed(text),
      case .did(let author) = uri.authority
    else { return }
    add(person: author.text, at: time)
    if takesPosts, uri.collection?.text == "app.bsky.feed.post", uri.recordKey != nil {
      note(.post(uri), author, at: time)
    }
  }

  private mutating func add(person text: String?, at time: String) {
    guard let did = text.flatMap({ DID.parsed($0) }) else { return }
    note(.person(did), did, at: time)
  }

  private mutating func note(_ subject: ContextItem.Subject, _ owner: DID, at time: String) {
    guard owner != account else { return }
    if let known = times[subject], known >= time { return }
    times[subject] = time
    if times.count >= limit + Self.slack { drop(to: limit) }
  }
}

extension Identifier {
  /// The identifier that a text of a record spells; nil if it spells none.
  fileprivate static func parsed(_ text: String) -> Self? {
    do throws(IdentifierError) { return try Self(text) } catch { return nil }
  }
}
