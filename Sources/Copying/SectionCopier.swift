internal import Archive
internal import Files
internal import IPLD
internal import Snapshots

/// Copies sections of archives into a new one, each once, and knows what has become of each.
///
/// What is read has been hashed by the reader before it is appended, and is hashed again by the
/// writer. Damage ends the copy; in salvage it is noted, and the copy goes on behind it.
struct SectionCopier: ~Copyable {
  let sources: [SourceArchive]
  let isSalvage: Bool
  var blocks: [SourceBlocks]
  var copied: [CopiedSections]
  var writer: ArchiveWriter
  /// How many sections are lost.
  private(set) var lostCount: UInt64 = 0
  /// The first of the lost sections whose CIDs could be read.
  private(set) var lost: [CID] = []
  private let observer: Progress.Observer

  /// How many lost sections are named.
  private static let maximumNamed = 1000
  /// The body length from which a body is not held in memory.
  private static let largeBody: UInt64 = 1 << 16

  /// A copier from these archives.
  ///
  /// - Throws: ``BackupError`` if there is no room for a temporary file.
  init(
    _ sources: [SourceArchive], isSalvage: Bool, into writer: consuming ArchiveWriter,
    observer: @escaping Progress.Observer
  ) throws {
    let blocks = try sources.map { try SourceBlocks($0.reader, observer) }
    self.sources = sources
    self.isSalvage = isSalvage
    self.observer = observer
    self.writer = writer
    self.blocks = blocks
    copied = sources.map { CopiedSections(of: $0.reader) }
  }

  /// How many sections of the archives are neither in the new one nor made again.
  var leftOutCount: Int { copied.reduce(0) { $0 + $1.leftOutCount } }

  // MARK: Sections by their ordinals

  /// Copies the sections of a CAR in their order; in salvage in that of the file.
  ///
  /// - Parameter limit: the most bytes that they may have.
  mutating func copy(_ runs: [Range<UInt64>], from source: Int, limit: UInt64) throws {
    let new = untouched(
      of: isSalvage ? runs.sorted { $0.lowerBound < $1.lowerBound } : runs, source)
    guard !isSalvage, new.count > GatheredSections.maximumRuns else {
      for run in new { try copy(run, from: source) }
      return
    }
    // In an order of its own each section would cost the whole pack that it lies in.
    let archive = sources[source]
    let observer = observer
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
          let body = offset + prefix.length..<offset + Int(prefix.sectionLength)
          if copied[source].isUntouched(ordinal), !isElsewhere(prefix.cid, ordinal, source) {
            let new = try Self.writing { try writer.append(prefix.cid, bytes.extracting(body)) }
            copied[source].note(ordinal, as: new)
          }
          ordinal += 1
          offset = body.upperBound
        }
      }
    }
  }

  private func untouched(of runs: [Range<UInt64>], _ source: Int) -> [Range<UInt64>] {
    var untouched: [Range<UInt64>] = []
    for run in runs {
      var start = run.lowerBound
      while start < run.upperBound {
        var end = start
        while end < run.upperBound, copied[source].isUntouched(end) { end += 1 }
        if end > start { untouched.append(start..<end) }
        start = end + 1
      }
    }
    return untouched
  }

  /// Copies sections that follow one another.
  mutating func copy(_ ordinals: Range<UInt64>, from source: Int) throws {
    var next = ordinals.lowerBound
    while next < ordinals.upperBound {
      var current: Section?
      do {
        try copy(next..<ordinals.upperBound, from: source) { section in
          current = section
          next = section.ordinal
        }
        return
      } catch BackupError.damagedArchive where isSalvage {
        try writer.cancel()
        // The next one could not even be located, unless what was read last is not in the new
        // archive.
        if current != nil, !copied[source].isUntouched(next) { (current, next) = (nil, next + 1) }
        copied[source].noteLost(next)
        lostCount += 1
        if let current, lost.count < Self.maximumNamed { lost.append(current.cid) }
        next += 1
      }
    }
  }

  /// Copies sections up to the first that is damaged.
  private mutating func copy(
    _ ordinals: Range<UInt64>, from source: Int, visit: (Section) -> Void
  ) throws {
    let archive = sources[source]
    var body: [UInt8] = []
    var isStreamed = false
    try archive.reading {
      try archive.reader.forEachSection(in: ordinals) { section in
        visit(section)
        guard copied[source].isUntouched(section.ordinal),
          !isElsewhere(section.cid, section.ordinal, source)
        else { return .skip }
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

  /// Copies everything that has been neither copied nor made again.
  mutating func copyRest(of source: Int) throws {
    let end = UInt64(copied[source].capacity)
    for run in untouched(of: [0..<end], source) {
      var start = run.lowerBound
      // Bookkeeping that is made again divides the runs.
      for ordinal in run where copied[source].isReplaced(ordinal) {
        try copy(start..<ordinal, from: source)
        start = ordinal + 1
      }
      try copy(start..<run.upperBound, from: source)
      observer(Progress(stage: "salvaging", done: min(run.upperBound, end), total: end))
    }
  }

  /// Notes a section that was copied from another archive already.
  ///
  /// The writer would find it too, by reading back the pack it is in.
  private mutating func isElsewhere(_ cid: CID, _ ordinal: UInt64, _ source: Int) -> Bool {
    for other in sources.indices where other != source {
      guard let place = blocks[other].ordinal(of: cid), let new = copied[other][place] else {
        continue
      }
      copied[source].note(ordinal, as: new)
      return true
    }
    return false
  }

  /// Writes to the new archive, and tells damage there from damage of a source.
  ///
  /// - Throws: ``BackupError/copyFailed(_:)`` in place of an error about what was read back; any
  ///   other as it is.
  static func writing<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as ArchiveError where error.reason.isDamage {
      throw BackupError.copyFailed("\(error)")
    }
  }
}
