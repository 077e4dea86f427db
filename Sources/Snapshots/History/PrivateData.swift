package import ATProtocol
package import Archive
package import Files
package import IPLD

/// What a server keeps for an account's owner alone: preferences, mutes, bookmarks, drafts, chat
/// (FORMAT 6.6).
///
/// ```
/// manifest ─ private ─► list                      {"carpackPrivate": [ entry, … ], "did": …}
///                        └ entry ─ answers ─► piece   {"carpackPrivate": bytes}, at most 1 MiB of an answer
/// ```
/// 1. An answer is its pieces, one after the other, and those are what the server sent.
/// 2. List and pieces are DAG-CBOR, so that no piece is ever taken for a blob, which is raw.
package struct PrivateData: Equatable, Sendable {
  /// The account.
  package var did: DID
  /// The results, by the names of the methods, in the order in which these were called.
  package var entries: [Entry]

  /// The result of one method.
  package struct Entry: Equatable, Sendable {
    /// The name of the method.
    package var endpoint: String
    /// When it was called, in RFC 3339 and UTC.
    package var fetchedAt: String
    /// The media type of the answers, as the server named it.
    package var contentType: String?
    /// The answers, in their order, each as the blocks that hold its pieces.
    package var answers: [[CID]] = []
    /// How many bytes the answers have.
    package var byteCount: UInt64 = 0
    /// Why there is nothing, or not everything; nil if nothing is wrong.
    package var fault: Fault?

    /// Nothing yet.
    package init(_ endpoint: String, at fetchedAt: String) {
      (self.endpoint, self.fetchedAt) = (endpoint, fetchedAt)
    }

    /// Whether everything that the server had is here.
    package var isWhole: Bool { fault == nil }
  }

  /// What went wrong with one method.
  package struct Fault: Equatable, Sendable {
    /// What it means for the data.
    package enum Kind: String, CaseIterable, Sendable {
      /// The server does not have the method, or does not let this session use it.
      case notGiven = "not-given"
      /// There was no answer, or none that could be read.
      case notFetched = "not-fetched"
      /// Some answers arrived, but not the last.
      case notWhole = "not-whole"
      /// Some of it was lost later, in a damaged archive.
      case lost
    }

    /// What it means.
    package var kind: Kind
    /// Why, in words.
    package var why: String

    /// A fault.
    package init(_ kind: Kind, _ why: String) { (self.kind, self.why) = (kind, why) }

    /// The message for people.
    package var sentence: String {
      switch kind {
      case .notGiven: "the server does not provide it"
      case .notFetched: "it could not be fetched"
      case .notWhole: "it is incomplete"
      case .lost: "some of it is lost"
      }
    }
  }

  /// The data of an account.
  package init(of did: DID, _ entries: [Entry] = []) { (self.did, self.entries) = (did, entries) }

  /// The blocks that hold the answers.
  package var pieces: [CID] { entries.flatMap { $0.answers.joined() } }

  /// How many bytes there are.
  package var byteCount: UInt64 { entries.reduce(0) { $0.addingSaturated($1.byteCount) } }

  /// Whether nothing was given.
  package var isEmpty: Bool { entries.allSatisfy(\.answers.isEmpty) }

  /// Whether the only fault is that the server does not provide something.
  package var isWhole: Bool { entries.allSatisfy { $0.isWhole || $0.fault?.kind == .notGiven } }
}

// MARK: As blocks

extension PrivateData {
  /// The only field of a piece, and the first of a list.
  private static let name = "carpackPrivate"
  /// How many bytes of an answer are in one block at most.
  package static let maximumPiece = 1 << 20

  /// The block that holds a piece of an answer.
  static func block(_ piece: [UInt8]) throws -> Block { try block(.map([name: .bytes(piece)])) }

  private static func block(_ value: IPLDValue) throws -> Block {
    let bytes = try DAGCBOREncoder.encode(value)
    return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
  }

  /// The piece that a block holds.
  ///
  /// - Throws: ``SnapshotError/malformedPage(_:)`` for another block.
  static func piece(_ block: Block) throws(SnapshotError) -> [UInt8] {
    guard let piece = value(of: block)?[name]?.bytes else { throw .malformedPage(block.cid) }
    return piece
  }

  private static func value(of block: Block) -> IPLDValue? {
    try? DAGCBORDecoder.decode(block.bytes.span)
  }

  /// The block of the list.
  package func block() throws -> Block {
    try Self.block(
      .map(["did": .string(did.text), Self.name: .array(entries.map { .map($0.map) })]))
  }

  /// Reads a list from its block.
  ///
  /// - Throws: ``SnapshotError/malformedPage(_:)`` for another block.
  init(_ block: Block) throws(SnapshotError) {
    guard let value = Self.value(of: block), let items = value[Self.name]?.array,
      let did = value["did"].flatMap(DID.read)
    else { throw .malformedPage(block.cid) }
    self.did = did
    entries = items.compactMap { Entry($0) }
    guard entries.count == items.count else { throw .malformedPage(block.cid) }
  }
}

extension PrivateData.Entry {
  fileprivate var map: IPLDMap {
    var map: IPLDMap = [
      "endpoint": .string(endpoint), "fetchedAt": .string(fetchedAt),
      "answers": .array(answers.map { .array($0.map { .link($0) }) }),
      "bytes": .integer(Int128(byteCount)),
    ]
    map["contentType"] = contentType.map { .string($0) }
    map["fault"] = fault.map { .map(["kind": .string($0.kind.rawValue), "why": .string($0.why)]) }
    return map
  }

  fileprivate init?(_ value: IPLDValue) {
    guard let endpoint = value["endpoint"]?.string, let fetchedAt = value["fetchedAt"]?.string,
      let answers = value["answers"]?.array, let count = value["bytes"].flatMap(UInt64.read)
    else { return nil }
    self.init(endpoint, at: fetchedAt)
    byteCount = count
    contentType = value["contentType"]?.string
    for answer in answers {
      guard let pieces = answer.array else { return nil }
      let links = pieces.compactMap(\.link)
      guard links.count == pieces.count else { return nil }
      self.answers.append(links)
    }
    if let fault = value["fault"] {
      guard let kind = fault["kind"]?.string, let why = fault["why"]?.string else { return nil }
      // A kind of a later version says at least that not everything is here.
      self.fault = PrivateData.Fault(PrivateData.Fault.Kind(rawValue: kind) ?? .notWhole, why)
    }
  }
}

extension ArchivedSnapshot {
  /// What the server keeps for the account's owner alone; nil if it was never requested.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if its list is damaged.
  package func privateData() throws -> PrivateData? {
    guard let link = snapshot.privateData else { return nil }
    let data = try PrivateData(try block(link))
    guard data.did == snapshot.did else { throw SnapshotError.malformedPage(link) }
    return data
  }

  /// Whether there is private data, or a list of it that cannot be read.
  package var holdsPrivateData: Bool {
    do {
      return try privateData().map { !$0.isEmpty } ?? false
    } catch {
      return true
    }
  }

  /// Passes on an answer, piece by piece.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` for a piece that is damaged; what `sink` throws.
  package func readPrivate(_ answer: [CID], to sink: (Span<UInt8>) throws -> Void) throws {
    for link in answer {
      let piece = try PrivateData.piece(try block(link))
      try sink(piece.span)
    }
  }
}

extension ArchiveReader {
  /// The accounts of which a snapshot has private data.
  ///
  /// - Throws: `ArchiveError` or ``SnapshotError`` for a manifest that cannot be read.
  package func accountsWithPrivateData() throws -> Set<DID> {
    var accounts: Set<DID> = []
    let history = try SnapshotHistory(of: self)
    for entry in history.entries {
      if try ArchivedSnapshot.manifest(entry.cid, in: history.reader).privateData != nil {
        accounts.insert(entry.did)
      }
    }
    return accounts
  }
}

extension AtomicFile {
  /// Gives an archive its final name; one with private data is readable by its owner only.
  ///
  /// - Throws: as ``publish(isPrivate:)`` does.
  package func publishArchive() throws {
    try publish(isPrivate: Self.isPrivate(ArchiveReader(path: temporaryPath)))
  }

  /// Whether an archive is for its owner alone, as one is whose manifests cannot all be read.
  package static func isPrivate(_ reader: ArchiveReader) -> Bool {
    (try? reader.accountsWithPrivateData().isEmpty) != true
  }
}
