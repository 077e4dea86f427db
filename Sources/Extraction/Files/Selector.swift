package import ATProtocol
internal import Files
package import IPLD

/// What a person means by a word: one thing of a snapshot, or several by a pattern.
///
/// | word | meaning |
/// |---|---|
/// | a CID | that block or blob |
/// | `bafy…`, `bafk…`, six characters at least | the only CID that begins so |
/// | `collection/rkey` | that record; `*` and `?` stand for any characters but `/` |
/// | `collection` (a word with a `.`) | all records of the collection, or of those that fit the
/// pattern |
/// | any other word | the only record with this key |
/// | `at://account/collection/rkey` | the same of that account |
/// | `https://bsky.app/profile/account/post/rkey` | the record that the page shows |
package enum Selector: Equatable, Sendable {
  case cid(CID)
  case cidPrefix(String)
  case records(PathPattern, of: ATIdentifier?)

  /// The shortest beginning of a CID.
  private static let shortestPrefix = 6

  /// Reads a word.
  ///
  /// - Throws: ``BackupError/malformedSelector(_:)``.
  package init(_ text: String) throws {
    if let page = Self.page(text) {
      self = try Self.records(page.path, of: page.account, in: text)
    } else if text.hasPrefix("at://") {
      let parts = text.dropFirst(5).split(separator: "/", maxSplits: 1)
      guard let account = parts.first else { throw BackupError.malformedSelector(text) }
      self = try Self.records(
        parts.count > 1 ? String(parts[1]) : "*", of: String(account), in: text)
    } else if let cid = try? CID(text) {
      self = .cid(cid)
    } else if text.hasPrefix("baf"), text.utf8.count >= Self.shortestPrefix,
      text.utf8.allSatisfy({ (0x61...0x7a) ~= $0 || (0x32...0x37) ~= $0 })
    {
      self = .cidPrefix(text)
    } else {
      self = try Self.records(text, of: nil, in: text)
    }
  }

  /// Whether a word may be a beginning of a CID that is too short to be accepted.
  package static func isShortOfCID(_ word: String) -> Bool {
    word.hasPrefix("baf") && word.utf8.count < shortestPrefix
  }

  private static func records(_ path: String, of account: String?, in text: String) throws
    -> Selector
  {
    let owner = account.flatMap { try? ATIdentifier($0) }
    guard let pattern = PathPattern(path), (owner == nil) == (account == nil) else {
      throw BackupError.malformedSelector(text)
    }
    return .records(pattern, of: owner)
  }

  /// Whether it means a record or blob.
  ///
  /// - Parameters:
  ///   - path: the path of the record, or of one that refers to the blob; nil if there is none.
  ///   - cid: the CID of the record or blob.
  package func matches(_ path: [UInt8]?, _ cid: CID) -> Bool {
    switch self {
    case .cid(let wanted): wanted == cid
    case .cidPrefix(let prefix): "\(cid)".hasPrefix(prefix)
    case .records(let pattern, _): path.map(pattern.matches) ?? false
    }
  }

  /// The account whose records are meant; nil if that is not said.
  package var account: ATIdentifier? {
    if case .records(_, let account) = self { account } else { nil }
  }

  /// The path of the record that it names in full; nil if it does not.
  package var exactPath: String? {
    if case .records(let pattern, _) = self { pattern.exactPath } else { nil }
  }

  /// Whether it means one record.
  package var meansOneRecord: Bool {
    guard case .records(let pattern, _) = self else { return false }
    return pattern.exactPath != nil || pattern.isKeyAlone
  }

  // MARK: Pages

  /// What stands between account and key in the address of a page, and the collection of its
  /// record.
  static let pages = [
    "post": "app.bsky.feed.post", "feed": "app.bsky.feed.generator", "lists": "app.bsky.graph.list",
  ]

  /// The record that a page of bsky.app, or of a site that is built like it, shows; nil if the text
  /// is not such an address.
  private static func page(_ text: String) -> (account: String, path: String)? {
    let scheme = "https://"
    guard text.hasPrefix(scheme) else { return nil }
    let address = text.dropFirst(scheme.count).prefix { $0 != "?" && $0 != "#" }
    let parts = address.split(separator: "/").map(String.init)
    guard parts.count >= 3 else { return nil }
    if parts[1] == "starter-pack", parts.count == 4 {
      return (parts[2], "app.bsky.graph.starterpack/\(parts[3])")
    }
    guard parts[1] == "profile" else { return nil }
    if parts.count == 3 { return (parts[2], "app.bsky.actor.profile/self") }
    guard parts.count == 5, let collection = pages[parts[3]] else { return nil }
    return (parts[2], "\(collection)/\(parts[4])")
  }
}

/// A pattern of record paths: `*` stands for any characters but `/`, `?` for one.
package struct PathPattern: Equatable, Sendable {
  /// The pattern of the collection; nil for any.
  private let collection: [UInt8]?
  /// The pattern of the record key; nil for any.
  private let key: [UInt8]?

  /// Reads a pattern: `collection/rkey`, a collection (a word with a `.`), or a record key.
  ///
  /// Nil for anything else.
  package init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard 1...2 ~= parts.count, !text.contains(where: \.isWhitespace),
      text.utf8.count <= RecordPath.maximumLength,
      !parts[0].isEmpty
    else { return nil }
    if parts.count == 2 {
      collection = Array(parts[0].utf8)
      key = parts[1].isEmpty ? nil : Array(parts[1].utf8)
    } else if text.contains(".") {
      (collection, key) = (Array(text.utf8), nil)
    } else {
      (collection, key) = (nil, text == "*" ? nil : Array(text.utf8))
    }
  }

  /// The path that is meant, if it is one path and no pattern.
  package var exactPath: String? {
    guard let collection, let key, !Self.isPattern(collection), !Self.isPattern(key) else {
      return nil
    }
    return String(decoding: collection + [UInt8(ascii: "/")] + key, as: UTF8.self)
  }

  /// Whether only a record key is given, without a pattern, so that one record is meant.
  package var isKeyAlone: Bool {
    guard collection == nil, let key else { return false }
    return !Self.isPattern(key)
  }

  /// Whether the key of a record in the tree, `collection/rkey`, matches.
  package func matches(_ path: [UInt8]) -> Bool {
    guard let slash = path.firstIndex(of: UInt8(ascii: "/")) else { return false }
    return (collection.map { Self.matches(path[..<slash], $0) } ?? true)
      && (key.map { Self.matches(path[(slash + 1)...], $0) } ?? true)
  }

  private static func isPattern(_ text: [UInt8]) -> Bool {
    text.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") }
  }

  /// Whether a text matches a pattern, with `*` for any characters and `?` for one.
  ///
  /// It steps back only to the last `*`, so that its time is at most the product of the two
  /// lengths.
  package static func matches(_ text: ArraySlice<UInt8>, _ pattern: [UInt8]) -> Bool {
    var (place, next) = (text.startIndex, 0)
    var retry: (place: Int, next: Int)?
    while place < text.endIndex {
      if next < pattern.count, pattern[next] == UInt8(ascii: "*") {
        retry = (place, next)
        next += 1
      } else if next < pattern.count,
        pattern[next] == UInt8(ascii: "?") || pattern[next] == text[place]
      {
        place += 1
        next += 1
      } else if let last = retry {
        retry = (last.place + 1, last.next)
        (place, next) = (last.place + 1, last.next + 1)
      } else {
        return false
      }
    }
    return pattern[next...].allSatisfy { $0 == UInt8(ascii: "*") }
  }
}
