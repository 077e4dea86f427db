internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots

/// Copying sections, each once.
///
/// What is read has been hashed by the reader before it is appended, and is hashed again by the
/// writer. Damage ends the copy; in salvage it is noted, and the copy continues after it.
extension SnapshotCopier {
  /// How many lost sections are named.
  private static var maximumNamed: Int { 1000 }

  // MARK: By their ordinals

  /// Copies the sections of a CAR in their order; in salvage in that of the file.
  ///
  /// - Parameter limit: the most bytes that they may have.
  mutating func copy(_ runs: [Range<UInt64>], from source: Int, limit: UInt64) throws {
    let new = sources[source].untouched(
      of: isSalvage ? runs.sorted { $0.lowerBound < $1.lowerBound } : runs)
    guard !isSalvage, new.count > LaidOutBlocks.maximumRuns else {
      for run in new { try copy(run, from: source) }
      return
    }
    // In an order of its own each section would cost the whole pack that it lies in.
    let (archive, observer) = (sources[source].archive, observer)
    let sections = try archive.reading {
      try LaidOutBlocks(new, of: archive.reader) { progress in
        guard progress.done <= limit else { throw SnapshotError.malformedOrder }
        observer(progress)
      }
    }
    try sections.forEach(in: new) { ordinal, number in
      let cid = sections.cid(number)
      guard isWanted(cid, ordinal, source) else { return }
      sources[source][ordinal] = try sections.withBody(number) { body throws in
        try append(cid, body)
      }
    }
  }

  /// Copies sections that follow one another; as the rest without those that are rebuilt.
  mutating func copy(_ ordinals: Range<UInt64>, from source: Int, isRest: Bool = false) throws {
    let archive = sources[source].archive
    var next = ordinals.lowerBound
    while next < ordinals.upperBound {
      var current: Section?
      do {
        let rest = next..<ordinals.upperBound
        return try archive.reading {
          try archive.reader.forEachSection(in: rest) { section in
            (current, next) = (section, section.ordinal)
            if isRest, sources.contains(where: { $0.replaced.contains(section.cid) }) {
              (current, next) = (nil, section.ordinal + 1)
              return false
            }
            guard isWanted(section.cid, section.ordinal, source) else { return false }
            let known = try Self.writing {
              try writer.begin(section.cid, length: section.bodyLength)
            }
            if let known { sources[source][section.ordinal] = known }
            return known == nil
          } chunk: { bytes in
            try Self.writing { try writer.take(bytes) }
          } end: { section in
            sources[source][section.ordinal] = try Self.writing { try writer.finish() }
          }
        }
      } catch BackupError.damagedArchive where isSalvage {
        try writer.cancel()
        // The next one could not even be located, unless what was read last is not in the new
        // archive.
        if current != nil, !sources[source].isUntouched(next) { (current, next) = (nil, next + 1) }
        sources[source][next] = nil
        lostCount += 1
        if let current, lost.count < Self.maximumNamed { lost.append(current.cid) }
        next += 1
      }
    }
  }

  /// Copies everything that has been neither copied nor rebuilt.
  mutating func copyRest(of source: Int) throws {
    let end = sources[source].capacity
    for run in sources[source].untouched(of: [0..<end]) {
      try copy(run, from: source, isRest: true)
      observer(Progress(stage: "salvaging", done: min(run.upperBound, end), total: end))
    }
  }

  /// Whether a section is still to be copied; one that was copied from another archive is noted.
  ///
  /// The writer would find it too, by reading back the pack it is in.
  private mutating func isWanted(_ cid: CID, _ ordinal: UInt64, _ source: Int) -> Bool {
    guard sources[source].isUntouched(ordinal) else { return false }
    for other in sources.indices where other != source {
      guard let place = sources[other].ordinal(of: cid), let new = sources[other][place] else {
        continue
      }
      sources[source][ordinal] = new
      return false
    }
    return true
  }

  // MARK: By their CIDs

  /// Copies a section, if the archive holds it.
  mutating func copy(_ cid: CID, from source: Int) throws -> CopyOutcome {
    let archive = sources[source].archive
    do {
      let known = sources[source].ordinal(of: cid)
      let found = try known ?? archive.reading { try archive.reader.section(of: cid)?.ordinal }
      guard let ordinal = found else { return .absent }
      if sources[source].isUntouched(ordinal) { try copy(ordinal..<ordinal + 1, from: source) }
      return sources[source][ordinal] == nil ? .lost : .copied
    } catch BackupError.damagedArchive where isSalvage {
      return .lost
    }
  }

  /// Copies a section that must exist.
  ///
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if it is not, except in salvage.
  /// - Returns: whether it is in the new archive.
  mutating func require(_ cid: CID, from source: Int) throws -> Bool {
    let isCopied = try copy(cid, from: source) == .copied
    guard isCopied || isSalvage else {
      throw BackupError.damagedArchive(
        sources[source].archive.name, "\(SnapshotError.blockMissing(cid))")
    }
    return isCopied
  }

  /// Copies what fields of unknown meaning lead to: each block that is there, and what it links to.
  ///
  /// A later version may have lists that this one does not know. Too much is kept rather than too
  /// little.
  mutating func follow(_ links: [CID], from source: Int) throws {
    let archive = sources[source].archive
    var open = links
    while let cid = open.popLast() {
      guard try copy(cid, from: source) == .copied, cid.codec == .dagCBOR,
        let number = sources[source].blocks.number(of: cid),
        !sources[source].followed.contains(number)
      else { continue }
      sources[source].followed.insert(number)
      do {
        open += try archive.reading { try archive.reader.body(of: cid).map(Self.links) ?? [] }
      } catch let error as ArchiveError where isSalvage && error.faultKind == .limit {
        // A salvage copies what nothing leads to, too.
      }
    }
  }

  /// The links of a block; none of one that is not DAG-CBOR.
  private static func links(_ block: [UInt8]) -> [CID] {
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

  // MARK: Writing

  /// Appends a section to the new archive; returns its ordinal there.
  @discardableResult
  mutating func append(_ cid: CID, _ body: Span<UInt8>) throws -> UInt64 {
    try Self.writing { try writer.append(cid, body) }
  }

  /// Appends blocks to the new archive; returns their CIDs.
  mutating func append(_ blocks: [Block]) throws -> [CID] {
    try Self.writing { try writer.append(blocks) }
  }

  /// Writes to the new archive, and tells damage there from damage of a source.
  ///
  /// - Throws: ``BackupError/copyFailed(_:)`` in place of an error about what was read back; any
  ///   other as it is.
  static func writing<Value>(_ body: () throws -> Value) throws -> Value {
    try onDamage(BackupError.copyFailed, body)
  }
}
