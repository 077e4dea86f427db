internal import ATProtocol
internal import Archive
internal import IPLD

/// Copying sections, and finding what they lead to.
extension SnapshotCopier {
  /// The longest block whose links are followed.
  private static let maximumBlock: UInt64 = 16 << 20
  /// The body length from which a body is not held in memory.
  private static let largeBody: UInt64 = 1 << 16

  /// Copies sections that follow one another, those that are not there yet.
  ///
  /// - Parameters:
  ///   - isScanning: whether they may be records, so that the blobs that they refer to are wanted.
  mutating func copySections(
    _ ordinals: Range<UInt64>, from source: Int, into writer: inout ArchiveWriter,
    scanning isScanning: Bool
  ) throws {
    let archive = sources[source]
    var body: [UInt8] = []
    var isStreamed = false
    var spool: TemporaryFile?
    var known: UInt64?
    try archive.reading {
      try archive.reader.forEachSection(in: ordinals) { section in
        known = copied[source][section.ordinal]
        if known != nil, !isScanning { return .skip }
        body.removeAll(keepingCapacity: true)
        isStreamed = false
        spool = nil
        if section.bodyLength >= Self.largeBody {
          if known == nil {
            known = try Self.writing { try writer.begin(section.cid, length: section.bodyLength) }
          }
          isStreamed = known == nil
          guard isStreamed || isScanning else {
            note(section, known, source, isScanning)
            return .skip
          }
          // A record of that size is one that nobody writes; it is looked into all the same, but not in memory.
          spool = isScanning ? try TemporaryFile() : nil
        }
        return .read
      } chunk: { bytes in
        if isStreamed { try Self.writing { try writer.take(bytes) } }
        if let spool {
          try spool.write(bytes)
        } else if !isStreamed {
          body.append(bytes)
        }
      } end: { section in
        if isStreamed {
          known = try Self.writing { try writer.finish() }
        } else if known == nil {
          known = try Self.writing { try writer.append(section.cid, body.span) }
        }
        if let spool {
          try spool.map().withBytes { scan($0) }
        } else if isScanning {
          scan(body.span)
        }
        note(section, known, source, isScanning)
      }
    }
  }

  /// Does something with the new archive, so that what is read back of it and proves to be damaged is not taken for damage of the old one.
  ///
  /// - Throws: ``BackupError/copyFailed(_:)`` in place of an error that is about what was read; any other as it is.
  static func writing<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as ArchiveError where error.reason.isDamage {
      throw BackupError.copyFailed("\(error)")
    }
  }

  private mutating func note(
    _ section: Section, _ new: UInt64?, _ source: Int, _ isScanned: Bool
  ) {
    guard let new else { return }
    copied[source].note(section.ordinal, as: new, isScanned ? .scanned : [])
  }

  /// Takes note of the blobs that a record refers to.
  private mutating func scan(_ record: Span<UInt8>) {
    var found: [CID] = []
    do throws(DAGCBORError) {
      _ = try blobs.scan(record) { found.append($0.cid) }
    } catch {
      // What is not DAG-CBOR refers to nothing; the record is kept all the same.
    }
    wanted.formUnion(found)
  }

  /// Copies the blobs that are wanted, from whichever archive holds them.
  mutating func copyBlobs(preferring first: Int, into writer: inout ArchiveWriter) throws {
    defer { wanted.removeAll() }
    let order = [first] + sources.indices.filter { $0 != first }
    for source in order where !wanted.isEmpty {
      let cids = Array(wanted)
      let matches = try sources[source].reading {
        try sources[source].reader.matches(cids.count) { cids[$0] }
      }
      var ordinals: [UInt64] = []
      for (cid, match) in zip(cids, matches) {
        guard let match else { continue }
        wanted.remove(cid)
        if copied[source][match.ordinal] == nil { ordinals.append(match.ordinal) }
      }
      // In the order of the file, in which they are read fastest.
      for ordinal in ordinals.sorted() {
        try copySections(ordinal..<ordinal + 1, from: source, into: &writer, scanning: false)
      }
    }
  }

  /// Copies the pages of extras and of missing blobs, and the extras.
  mutating func copyLists(
    _ archived: ArchivedSnapshot, from source: Int, into writer: inout ArchiveWriter
  ) throws {
    let snapshot = archived.snapshot
    for page in snapshot.extrasPages + snapshot.missingPages {
      try copyBlock(page, from: source, into: &writer)
    }
    for extra in try sources[source].reading({ try archived.extras() }) {
      try copyBlock(extra, from: source, into: &writer)
    }
  }

  /// Copies the documents about the account.
  mutating func copyIdentity(
    _ archived: ArchivedSnapshot, from source: Int, into writer: inout ArchiveWriter
  ) throws {
    for document in [archived.snapshot.didDocument, archived.snapshot.plcLog] {
      if let document { try copyBlock(document, from: source, into: &writer) }
    }
  }

  /// Copies a block that has to be there.
  private mutating func copyBlock(
    _ cid: CID, from source: Int, into writer: inout ArchiveWriter
  ) throws {
    guard let ordinal = try ordinal(of: cid, in: source) else {
      throw BackupError.damagedArchive(
        sources[source].name, "\(SnapshotError.blockMissing(cid))")
    }
    guard copied[source][ordinal] == nil else { return }
    try copySections(ordinal..<ordinal + 1, from: source, into: &writer, scanning: false)
  }

  private func ordinal(of cid: CID, in source: Int) throws -> UInt64? {
    try sources[source].reading { try sources[source].reader.ordinal(of: cid) }
  }

  /// Copies what fields lead to whose meaning is not known here, as far as it is in the archive: each block, and what that links to.
  ///
  /// A later version may have lists of things that this one knows nothing of. Too much is kept rather than too little.
  mutating func follow(_ links: [CID], from source: Int, into writer: inout ArchiveWriter) throws {
    var open = links
    while let cid = open.popLast() {
      guard let ordinal = try ordinal(of: cid, in: source),
        !copied[source].has(.followed, ordinal)
      else { continue }
      try copySections(ordinal..<ordinal + 1, from: source, into: &writer, scanning: false)
      guard let new = copied[source][ordinal] else { continue }
      copied[source].note(ordinal, as: new, .followed)
      guard cid.codec == .dagCBOR else { continue }
      let reader = sources[source].reader
      open += try sources[source].reading {
        guard try reader.section(at: ordinal).bodyLength <= Self.maximumBlock,
          let body = try reader.body(of: cid)
        else { return [] }
        return Self.links(in: body)
      }
    }
  }

  /// The links of a block; none of one that is not DAG-CBOR.
  private static func links(in block: [UInt8]) -> [CID] {
    var links: [CID] = []
    var scanner = DAGCBORScanner()
    do {
      while let token = try scanner.next(in: block.span) {
        if case .link(let range) = token { links.append(try CID(block.span.extracting(range))) }
      }
    } catch {
      // What cannot be read leads nowhere.
      return []
    }
    return links
  }
}
