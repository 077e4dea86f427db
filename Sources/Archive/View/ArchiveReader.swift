package import IPLD
internal import Synchronization
package import SystemPackage

/// Reads an archive: any section by its CID or number, or runs of them in a stream.
///
/// Opening costs the footer and the headers of the index segments, whatever the size of the file.
/// Reading needs no lock, works from several threads, and looks only at what was committed when the
/// file was opened.
///
/// 1. Bytes are handed out only from frames whose checksum holds; a body is hashed, too, and one
///    that does not hash to its CID is an error. Of a frame that does not hold, and of a section
///    with such a frame, bytes are handed out only if they were hashed before.
/// 2. The index is never believed: what it points to is compared with the whole CID, and when
///    something is not found, or not what it should be, the index is checked.
/// 3. A section that is damaged is read from where it was written again, if it was (FORMAT 5.2).
/// 4. A reader never changes. If its index proves damaged, everything is read through another one,
///    ``surveyed()``, which is made once however many threads meet the damage. That one numbers
///    sections as the file does, as far as anything in it tells.
public final class ArchiveReader: Sendable {
  /// What was committed.
  package let generation: Generation
  /// How many bytes the file has, what is not committed included.
  package let fileSize: UInt64
  /// How much the file may hold.
  package let limits: ArchiveLimits
  /// How many numbers there are for sections, those of lost ones and of whole ones after the last
  /// footer included.
  package let sectionCount: UInt64

  package let file: MappedFile
  /// Up to where sections are read: the end of what is committed, or of what was surveyed after it.
  let readableLength: Int
  /// Where sections are, by the file or by a survey.
  let index: ArchiveIndex
  /// What follows the last footer; nil if nothing does.
  let tail: Survey?
  /// The survey of the whole file by which this reader was made; nil if the file's index is used.
  package let survey: Survey?
  let decoder = FrameDecoder()
  let cache = FrameCache()

  /// What had to be done to open the file.
  private let opening: Recovery?
  /// Whether the whole file may be surveyed when something is not where the index says.
  private let maySurvey: Bool
  /// The reader that a survey of the whole file made, or why there is none; nil before that.
  private let replacement = Mutex<Result<ArchiveReader, any Error>?>(nil)
  /// What was found out about the index; when that happens does not change what is read.
  ///
  /// Whether its checksums hold, nil if they have not been compared; what it keeps of the key of
  /// every ordinal, to find what supersedes a damaged section, read when first needed; where the
  /// newest manifests lie of the footers that were read; what is left of sections of several frames
  /// that do not all hold, by where they begin; and whether anything was read of a frame that does
  /// not hold.
  let findings = Mutex<Findings>((nil, nil, [:], [:], false))
  typealias Findings = (
    isIntact: Bool?, keptKeys: [UInt64]?, heads: [CID: UInt64],
    largeRemains: [UInt64: LargeRemains?], hasReadRemains: Bool
  )

  private init(
    _ file: MappedFile, _ limits: ArchiveLimits, _ generation: Generation, readableLength: Int,
    index: ArchiveIndex, tail: Survey? = nil, survey: Survey? = nil, opening: Recovery? = nil,
    maySurvey: Bool = true
  ) {
    (self.file, self.limits, self.generation) = (file, limits, generation)
    (self.index, self.tail, self.survey, self.opening) = (index, tail, survey, opening)
    self.readableLength = readableLength
    self.maySurvey = maySurvey && survey == nil && generation.number > 0
    fileSize = UInt64(file.count)
    file.keep(upTo: generation.number > 0 ? Int(generation.committedLength) : file.count)
    sectionCount = survey?.sectionCount ?? tail?.sectionCount ?? generation.sectionCount
  }

  /// Opens the archive at `path`.
  ///
  /// Bytes after the last footer are surveyed, so that what is whole among them can be read, too;
  /// while a writer has the file they are left alone. A file without a footer is surveyed to its
  /// end: that takes as long as verifying it.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - limits: How much it may hold.
  /// - Throws: ``ArchiveError`` if the file cannot be read, is not an archive, or needs a later
  ///   version.
  package convenience init(path: FilePath, limits: ArchiveLimits = ArchiveLimits()) throws {
    try self.init(try MappedFile(path).archive(), limits: limits)
  }

  /// Opens the archive that these bytes are.
  ///
  /// - Parameters:
  ///   - file: The bytes.
  ///   - limits: How much it may hold.
  ///   - ignoresTail: Whether bytes after the last footer are left alone, as by a caller that is
  ///     going to write there.
  /// - Throws: ``ArchiveError`` as `init(path:limits:)` does.
  package convenience init(
    _ file: MappedFile, limits: ArchiveLimits = ArchiveLimits(), ignoresTail: Bool = false
  ) throws {
    let committed = try Self.lastGeneration(of: file)
    try file.checkFetched()
    let isLonger = committed.map { $0.committedLength < UInt64(file.count) } ?? true
    let hasTail = isLonger && !((ignoresTail || file.isBeingWritten) && committed != nil)
    // What follows the last footer, or everything, if there is no footer.
    let tail = hasTail ? try Survey(file, after: committed, limits: limits) : nil
    guard let generation = committed ?? tail.flatMap({ $0.foundAnything ? $0.uncommitted : nil })
    else { throw ArchiveError(.notAnArchive) }
    var opened = committed.map(ArchiveIndex.openedRanges) ?? []
    if hasTail { opened.append(Int(committed?.committedLength ?? 0)..<file.count) }
    var index = ArchiveIndex.empty
    var survey: Survey?
    var damagedAt: UInt64?
    do {
      index = try file.withBytes(reading: opened) { (bytes) throws in
        let elsewhere = file.isFetched ? file : nil
        let index =
          try committed.map { try ArchiveIndex($0, in: bytes, elsewhere: elsewhere) } ?? .empty
        return try index.appending(tail?.segment(in: bytes) ?? [])
      }
      try file.checkFetched()
    } catch let error as ArchiveError {
      try file.checkFetched()
      guard case .damagedIndex = error.reason else { throw error }
      (survey, index) = try Self.survey(file, limits)
      damagedAt = error.offset ?? 0
    }
    let readableLength = Int(hasTail ? UInt64(file.count) : generation.committedLength)
    var opening: Recovery?
    if file.isBeingWritten, committed != nil {
      let behind = file.fileSize - generation.committedLength
      opening = behind > 0 ? Recovery(interruptedTail: behind, isBeingWritten: true) : nil
    } else if let tail {
      // Its index may be damaged as well.
      let known = ArchiveReader(
        file, limits, generation, readableLength: readableLength, index: index, survey: survey,
        maySurvey: false)
      opening = Recovery(
        interruptedTail: UInt64(file.count) - generation.committedLength,
        rebuild: committed == nil ? .noFooter : nil,
        isDamaged: try !tail.movedFooters(
          after: generation, besides: known.knownManifests
        ).isEmpty,
        damagedEnd: try file.damagedEnd(behind: committed))
    }
    if let damagedAt { opening = Recovery(opening, rebuiltAt: damagedAt) }
    self.init(
      file, limits, generation,
      readableLength: readableLength, index: index, tail: tail, survey: survey, opening: opening)
  }

  /// Reads what is committed in these bytes, and nothing after it.
  ///
  /// - Throws: ``ArchiveError`` if an index segment is missing.
  convenience init(_ file: MappedFile, committed: Generation) throws {
    let index = try file.withBytes(reading: ArchiveIndex.openedRanges(committed)) {
      (bytes) throws(ArchiveError) in
      try ArchiveIndex(committed, in: bytes, elsewhere: file.isFetched ? file : nil)
    }
    self.init(
      file, ArchiveLimits(), committed, readableLength: Int(committed.committedLength),
      index: index,
      maySurvey: false)
  }

  /// Reads what is committed and, behind it, those sections of a tail that a writer adopts.
  ///
  /// - Parameters:
  ///   - tail: The tail, in which only these have ordinals.
  ///   - file: The file with the tail.
  ///   - bytes: Its bytes.
  /// - Throws: ``ArchiveError`` if the index is longer than it can be.
  func adopting(_ tail: Survey, _ file: MappedFile, in bytes: Span<UInt8>) throws -> ArchiveReader {
    ArchiveReader(
      file, limits, generation, readableLength: file.count,
      index: try index.appending(tail.segment(in: bytes)), tail: tail, maySurvey: false)
  }

  private static func survey(_ file: MappedFile, _ limits: ArchiveLimits) throws
    -> (Survey, ArchiveIndex)
  {
    let survey = try Survey(file, limits: limits)
    let segment = try file.withBytes { (bytes) throws in try survey.segment(in: bytes) }
    return (survey, try ArchiveIndex.empty.appending(segment))
  }

  /// A reader of the same file by a survey of all of it, so that everything in it is found that is
  /// whole, wherever it lies; this one if it is such a reader.
  ///
  /// The first call takes as long as verifying the file; other calls wait for it.
  ///
  /// - Throws: ``ArchiveError`` if the file cannot be surveyed.
  package func surveyed() throws -> ArchiveReader { try surveyed(damagedAt: nil) }

  /// - Parameter place: Where the index is damaged; nil if it is not.
  private func surveyed(damagedAt place: UInt64?) throws -> ArchiveReader {
    guard maySurvey else { return self }
    return try replacement.withLock { made in
      let result =
        made
        ?? Result {
          let (survey, index) = try Self.survey(file, limits)
          let reader = ArchiveReader(
            file, limits, generation, readableLength: readableLength, index: index, tail: tail,
            survey: survey, opening: place.map { Recovery(opening, rebuiltAt: $0) } ?? opening)
          reader.cache.takeCapacity(of: cache)
          return reader
        }
      made = result
      return try result.get()
    }
  }

  /// The reader that stands for this one because its index is damaged; nil if that is not known.
  var standIn: ArchiveReader? {
    get throws {
      guard findings.withLock({ $0.isIntact == false }) else { return nil }
      return try surveyed()
    }
  }

  /// Makes sure of the index when something was not found or not as it should be.
  ///
  /// - Throws: ``ArchiveError`` if no index can be read from the file.
  /// - Returns: The reader to ask instead; nil if there is no reason to ask another. Where another
  /// frame stands than the index says, or none at all, frames were moved, and a survey finds them.
  func other(after failure: ArchiveError?) throws -> ArchiveReader? {
    guard maySurvey else { return nil }
    if try !isIndexIntact(after: failure) { return try surveyed() }
    guard let place = failure?.offset,
      try withFile({ (bytes) in !mayBeDamaged(at: place, in: bytes) })
    else { return nil }
    return try surveyed()
  }

  func isIndexIntact(after failure: ArchiveError?) throws -> Bool {
    if let known = findings.withLock({ $0.isIntact }) { return known }
    var place = try firstDamagedSegment.map { UInt64($0.frame.offset) }
    if place == nil, case .damagedIndex = failure?.reason {
      // Its checksums hold and what it says cannot be: made like that.
      place = failure?.offset ?? 0
    }
    if let place { _ = try surveyed(damagedAt: place) }
    findings.withLock { $0.isIntact = place == nil }
    return place == nil
  }

  /// The first segment of the index whose checksum does not hold; nil if all do.
  var firstDamagedSegment: IndexSegment? {
    get throws {
      try withFile { (bytes) in
        file.willRead(index.segments.map(\.frame.range))
        return index.firstDamaged(in: bytes)
      }
    }
  }

  /// Whether anything is committed, or any section after the header holds: a loss of power during
  /// the first write may leave neither.
  package var hasContent: Bool { generation.number > 0 || (survey ?? tail)?.hasContent == true }

  /// Refuses an archive that says that it decompresses to more than its size suggests.
  ///
  /// - Throws: ``ArchiveError``, unless the reader's limits allow it.
  package func refuseTooMuchContent() throws(ArchiveError) {
    let limit = limits.content(ofFile: fileSize)
    guard generation.streamLength <= limit else {
      throw ArchiveError(.tooMuchContent(limit: limit))
    }
  }

  /// Whether the archive is remote, so that what is read of it is fetched.
  package var liesElsewhere: Bool { file.source?.isFar ?? false }

  /// Makes sure that what was read is what the archive holds.
  ///
  /// - Throws: ``FetchFailure`` if some of it could not be fetched, or was cut off.
  package func checkFetched() throws { try file.checkFetched() }

  /// Whether the file was cut off while it was read: then nothing more is read with this reader.
  package var isCutOff: Bool { file.isCutOff }

  /// Releases the file's pages, for a caller that looks at many places far from one another; they
  /// are brought in again when they are wanted.
  package func releasePages() { file.releasePages() }

  /// Keeps the contents of this many packs in memory from now on: two are enough for what is read
  /// in the order of the archive.
  package func keepOnly(packs: Int) { cache.keepOnly(packs) }

  /// What had to be done to read the file at all; nil if it is as it should be, as far as has been
  /// seen.
  package var recovery: Recovery? {
    guard maySurvey, case .success(let reader) = replacement.withLock({ $0 }) else {
      return opening
    }
    return reader.opening
  }

  /// Whether anything was read of a frame that does not hold: it hashes to its CID, and the file is
  /// damaged.
  package var hasReadRemains: Bool {
    if findings.withLock({ $0.hasReadRemains }) { return true }
    guard maySurvey, case .success(let reader) = replacement.withLock({ $0 }) else { return false }
    return reader.hasReadRemains
  }

  /// The CAR header with its varint in front, byte for byte.
  ///
  /// - Throws: ``ArchiveError`` if frame 0 is damaged.
  package var carHeader: [UInt8] {
    get throws {
      try withFile { (bytes) throws in
        file.willReadHeader(in: bytes)
        return try DataFrame.carHeader(in: bytes).1
      }
    }
  }

  /// The number of the section with this CID; nil if it is not in the archive.
  ///
  /// - Throws: ``ArchiveError`` if the frame it would be in is damaged.
  package func ordinal(of cid: CID) throws -> UInt64? { try locate(cid)?.ordinal }

  /// The section with this CID; nil if it is not in the archive.
  ///
  /// - Throws: ``ArchiveError`` if the frame it would be in is damaged.
  package func section(of cid: CID) throws -> Section? { try locate(cid)?.section }

  /// The section with this number.
  ///
  /// - Throws: ``ArchiveError`` if there is none, or its frame is damaged.
  package func section(at ordinal: UInt64) throws -> Section {
    try locate(ordinal).section
  }

  /// The body of the section with this CID, all of it; nil if it is not in the archive.
  ///
  /// - Parameters:
  ///   - cid: Its CID.
  ///   - limit: The longest body that is read into memory: a block of a repository, by default.
  ///   - isRecent: Whether it was written lately, most likely: where it is fetched by.
  /// - Throws: ``ArchiveError`` if it is longer, or damaged.
  /// - Returns: The body.
  package func body(of cid: CID, limit: Int = RepositoryLimits.block, isRecent: Bool = false) throws
    -> [UInt8]?
  {
    if file.isFetched, let head = try headBody(cid) { return head }
    guard let location = try locate(cid, isRecent: isRecent) else { return nil }
    let length = location.prefix.bodyLength
    guard length <= UInt64(limit) else {
      throw ArchiveError(.bodyTooLarge(cid, length: length, limit: UInt64(limit)))
    }
    var body: [UInt8] = []
    body.reserveCapacity(Int(length))
    try stream(location) { chunk in body.append(chunk) }
    return body
  }

  /// Hands out the body of the section with this CID, in order, in pieces of at most 4 MiB.
  ///
  /// Each piece comes from a frame whose checksum holds. A body of 64 KiB or more is hashed while
  /// it streams, so that what was handed out may be thrown away only at the end; a smaller one is
  /// hashed before.
  ///
  /// - Throws: ``ArchiveError`` if it is damaged, and what `chunk` throws.
  /// - Returns: Whether the archive has the section.
  @discardableResult
  package func read(_ cid: CID, each chunk: (Span<UInt8>) throws -> Void) throws -> Bool {
    guard let location = try locate(cid) else { return false }
    try stream(location, chunk)
    return true
  }

  /// Visits the sections with these numbers in order, small and large, without holding a large one
  /// in memory.
  ///
  /// - Parameters:
  ///   - ordinals: Which; all that are committed by default.
  ///   - begin: Called with each section; returns whether the body is to be read.
  ///   - chunk: Called with the pieces of the body, none if it is empty, one if it is under 64 KiB.
  ///   - end: Called when a body that was read has proved to be the right one.
  /// - Throws: ``ArchiveError`` at the first section that is damaged, and what the closures throw.
  package func forEachSection(
    in ordinals: Range<UInt64>? = nil, begin: (Section) throws -> Bool,
    chunk: (Span<UInt8>) throws -> Void, end: (Section) throws -> Void = { _ in }
  ) throws {
    for ordinal in ordinals ?? 0..<generation.sectionCount {
      let location = try locate(ordinal)
      guard try begin(location.section) else { continue }
      try stream(location, chunk)
      try end(location.section)
    }
  }

  /// Writes sections as they stand in a CAR, `varint(length) CID body`, run by run.
  ///
  /// A run within a pack is one piece; a pack is decompressed once, as long as no more than sixteen
  /// others come between.
  ///
  /// - Parameters:
  ///   - runs: Which sections, in the order they are to have.
  ///   - isHashing: Whether every body is hashed. Without it the checksums of the frames are what
  ///     is checked.
  ///   - sink: Called with the bytes, in pieces of at most 4 MiB.
  /// - Throws: ``ArchiveError`` at the first section that is damaged, and what `sink` throws.
  package func copySections(
    _ runs: some Sequence<Range<UInt64>>, isHashing: Bool = true,
    to sink: (Span<UInt8>) throws -> Void
  ) throws {
    for run in runs {
      var ordinal = run.lowerBound
      while ordinal < run.upperBound {
        willReadPacks(of: CollectionOfOne(ordinal..<run.upperBound))
        let location = try locate(ordinal)
        let (frame, index) = (location.frame, location.number)
        guard frame.large == nil else {
          var prefix: [UInt8] = []
          CARWriter.appendPrefix(
            location.prefix.cid, bodyLength: location.prefix.bodyLength, to: &prefix)
          try sink(prefix.span)
          try stream(location, isHashing: isHashing, sink)
          ordinal += 1
          continue
        }
        // What is left of a damaged pack, or stands in for it, is examined section by section.
        let count =
          frame.failure != nil || location.asked != location.ordinal
          ? 1 : Int(min(run.upperBound - ordinal, UInt64(frame.count - index)))
        var end = index + count
        let damaged =
          isHashing || frame.failure != nil ? try firstDamaged(frame, index..<end, &end) : nil
        let bytes = frame.bytes
        if end > index { try sink(bytes.span.extracting(frame.range(from: index, to: end))) }
        if let damaged { throw ArchiveError(.damagedSection(damaged), offset: frame.place) }
        ordinal += UInt64(count)
      }
    }
  }
}

extension ArchiveReader {
  /// What stands for every section that can be reached by a number, in the order of the file as far
  /// as that is known.
  package var ordinals: Range<UInt64> { 0..<sectionLimit }

  /// The sections with ordinals below this one were written under these; others were given theirs
  /// by a survey that could not tell.
  package var certainEnd: UInt64 { (survey ?? tail)?.certainEnd ?? .max }

  /// No section that can be read has this ordinal or a later one.
  ///
  /// Whatever a footer claims, an archive has at least one byte for each section.
  package var sectionLimit: UInt64 { min(sectionCount, fileSize) }
}
