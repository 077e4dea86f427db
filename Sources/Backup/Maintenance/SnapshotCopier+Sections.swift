internal import ATProtocol
internal import Archive
internal import IPLD

/// Copying sections, and what they lead to.
extension SnapshotCopier {
  /// The longest block whose links are followed.
  private static let maximumBlock: UInt64 = 16 << 20
  /// The body length from which a body is not held in memory.
  private static let largeBody: UInt64 = 1 << 16

  /// Copies sections in the order of a CAR, those that are not there yet.
  ///
  /// - Parameter limit: the most bytes that they may have.
  mutating func copySections(
    _ runs: [Range<UInt64>], from source: Int, limit: UInt64, into writer: inout ArchiveWriter
  ) throws {
    var new: [Range<UInt64>] = []
    for run in runs {
      var start = run.lowerBound
      while start < run.upperBound {
        var end = start
        while end < run.upperBound, copied[source][end] == nil { end += 1 }
        if end > start { new.append(start..<end) }
        start = end + 1
      }
    }
    guard new.count > GatheredSections.maximumRuns else {
      for run in new { try copySections(run, from: source, into: &writer) }
      return
    }
    // In an order of its own each would take the whole pack that it lies in.
    let archive = sources[source]
    let sections = try archive.reading {
      try GatheredSections(new, of: archive.reader, limit: limit) { done in
        observer(Progress(stage: "reading", done: UInt64(done), total: 0))
      }
    }
    for run in new {
      var ordinal = run.lowerBound
      try sections.copy(run) { bytes in
        var offset = 0
        while offset < bytes.count {
          let prefix = try SectionPrefix(bytes, at: offset, place: 0)
          let end = offset + Int(prefix.sectionLength)
          if copied[source][ordinal] == nil, !isElsewhere(prefix.cid, ordinal, source) {
            let body = bytes.extracting(offset + prefix.length..<end)
            let number = try Self.writing { try writer.append(prefix.cid, body) }
            copied[source].note(ordinal, as: number)
          }
          ordinal += 1
          offset = end
        }
      }
    }
  }

  /// Copies sections that follow one another, those that are not there yet.
  mutating func copySections(
    _ ordinals: Range<UInt64>, from source: Int, into writer: inout ArchiveWriter
  ) throws {
    let archive = sources[source]
    var body: [UInt8] = []
    var isStreamed = false
    try archive.reading {
      try archive.reader.forEachSection(in: ordinals) { section in
        if copied[source][section.ordinal] != nil { return .skip }
        if isElsewhere(section.cid, section.ordinal, source) { return .skip }
        body.removeAll(keepingCapacity: true)
        isStreamed = section.bodyLength >= Self.largeBody
        guard isStreamed else { return .read }
        let known = try Self.writing {
          try writer.begin(section.cid, length: section.bodyLength)
        }
        guard let known else { return .read }
        copied[source].note(section.ordinal, as: known)
        return .skip
      } chunk: { bytes in
        if isStreamed {
          try Self.writing { try writer.take(bytes) }
        } else {
          body.append(bytes)
        }
      } end: { section in
        let new = try Self.writing {
          isStreamed ? try writer.finish() : try writer.append(section.cid, body.span)
        }
        copied[source].note(section.ordinal, as: new)
      }
    }
  }

  /// Whether another archive has a section too, and it has been copied from there; takes note of it then.
  ///
  /// The writer would find it, but by reading back the pack it is in, for each that comes in another order.
  private mutating func isElsewhere(_ cid: CID, _ ordinal: UInt64, _ source: Int) -> Bool {
    for other in sources.indices where other != source {
      guard let place = needs[other].ordinal(of: cid), let new = copied[other][place] else {
        continue
      }
      copied[source].note(ordinal, as: new)
      return true
    }
    return false
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

  /// Copies blobs, from whichever archive holds them.
  mutating func copyBlobs(
    _ blobs: [CID], preferring first: Int, into writer: inout ArchiveWriter
  ) throws {
    var wanted = blobs
    for source in [first] + sources.indices.filter({ $0 != first }) where !wanted.isEmpty {
      let cids = wanted
      let matches = try sources[source].reading {
        try sources[source].reader.matches(cids.count) { cids[$0] }
      }
      wanted = zip(cids, matches).filter { $1 == nil }.map(\.0)
      // In the order of the file, in which they are read fastest.
      for ordinal in matches.compactMap({ $0?.ordinal }).sorted() {
        try copySections(ordinal..<ordinal + 1, from: source, into: &writer)
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
    try copySections(ordinal..<ordinal + 1, from: source, into: &writer)
  }

  func ordinal(of cid: CID, in source: Int) throws -> UInt64? {
    try sources[source].reading { try sources[source].reader.ordinal(of: cid) }
  }

  /// Copies what fields lead to whose meaning is not known here, as far as it is in the archive: each block, and what that links to.
  ///
  /// A later version may have lists of things that this one knows nothing of. Too much is kept rather than too little.
  mutating func follow(_ links: [CID], from source: Int, into writer: inout ArchiveWriter) throws {
    var open = links
    while let cid = open.popLast() {
      guard let ordinal = try ordinal(of: cid, in: source) else { continue }
      try copySections(ordinal..<ordinal + 1, from: source, into: &writer)
      guard copied[source].follow(ordinal), cid.codec == .dagCBOR else { continue }
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
