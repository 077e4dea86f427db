internal import IPLD

/// Repairs an archive in place, without writing to anything that holds.
///
/// Index segments and footers say nothing that the data frames and their neighbours do not. Where
/// every byte of a damaged one is determined by them, it is made again where it lay, and so is the
/// note. Otherwise a new index and a new footer are appended over everything that is there, and
/// what they do not name no longer counts: the file says so by the feature
/// ``FeatureFlags/repaired``. Data that is lost cannot be made again; its ordinals stay, and the
/// index has no frame for them (FORMAT 7).
///
/// 1. Bytes of a frame that holds are never written to, and never cut off.
/// 2. Bytes that are not a frame are written to only where it is certain that no section is lost
///    with them.
/// 3. A file in which another archive begins is left alone.
package struct ArchiveRepair {
  /// What was done.
  package struct Report: Equatable, Sendable {
    /// Where index segments were made again.
    package internal(set) var segments: [UInt64] = []
    /// Where footers were made again.
    package internal(set) var footers: [UInt64] = []
    /// Whether the note was made again.
    package internal(set) var isNoteRestored = false
    /// Whether a new index and a footer were appended.
    package internal(set) var isReindexed = false
    /// How many bytes were healed from parity.
    package internal(set) var bytesHealed: UInt64 = 0
    /// How many bytes were made into frames that no longer count.
    package internal(set) var bytesVoided: UInt64 = 0
    /// How many bytes after everything whole were cut off.
    package internal(set) var bytesCutOff: UInt64 = 0
    /// How many damaged sections were written again.
    package internal(set) var sectionsHealed: UInt64 = 0
    /// How many sections are lost, as far as is known.
    package internal(set) var lostSectionCount: UInt64 = 0
    /// The first thing that could not be repaired; nil if there is none.
    package internal(set) var firstLost: ArchiveError?
    /// Whether something did not hold.
    ///
    /// Snapshots may then lack data of which the file has no trace.
    package internal(set) var wasDamaged = false

    /// A report of nothing.
    package init() {}

    /// Notes what is lost, by what verifying the archive has found.
    package mutating func note(_ verification: ArchiveVerification?) {
      firstLost = verification?.findings.first { $0.severity == .damaged }?.error
      lostSectionCount = verification?.damagedOrdinals.reduce(0) { $0 + UInt64($1.count) } ?? 0
    }

    /// How much was changed, which only grows.
    fileprivate var changes: UInt64 {
      UInt64(segments.count + footers.count + (isNoteRestored ? 1 : 0) + (isReindexed ? 1 : 0))
        + bytesHealed + bytesVoided + bytesCutOff + sectionsHealed
    }

    /// Whether the file is as it was.
    package var isUnchanged: Bool { changes == 0 }
  }

  let storage: any ArchiveStorage
  /// Other archives that may have what is lost.
  let sources: [ArchiveReader]
  let limits: ArchiveLimits
  private let keepsOrdinals: Bool
  private let choose: TailChoice?
  private let progress: (UInt64, UInt64) -> Void
  private var report: Report
  /// What a survey of the file as it is has found, if one was made already.
  private var known: Survey?

  /// Repairs what can be repaired.
  ///
  /// One round may restore what another lacked: they continue until nothing changes, so that
  /// repairing again does nothing.
  ///
  /// - Parameters:
  ///   - storage: The archive; it is locked.
  ///   - sources: Other archives, from which lost sections are taken that they have.
  ///   - limits: How much it may hold.
  ///   - keepsOrdinals: Whether the ordinals of what an unfinished write has left stay as they are,
  ///     because a snapshot there is whole, or a footer was after it. Otherwise what is torn of it
  ///     no longer counts, as for a writer.
  ///   - choose: Decides which snapshots of an interrupted write count; nil for those that follow
  ///     the newest.
  ///   - report: What was done to it before.
  ///   - progress: Called now and then with the bytes that are done and those there are.
  /// - Throws: ``ArchiveError`` if it is not an archive, needs a later version, or another archive
  ///   begins in it; what the storage throws. Whatever was written by then is right, and repairing
  ///   again continues.
  /// - Returns: What was done, then and before.
  package static func run(
    _ storage: any ArchiveStorage, from sources: [ArchiveReader] = [],
    limits: ArchiveLimits = ArchiveLimits(), keepsOrdinals: Bool = true,
    choosing choose: TailChoice? = nil, after report: Report = Report(),
    progress: @escaping (UInt64, UInt64) -> Void = { _, _ in }
  ) throws -> Report {
    var report = try mend(
      storage, from: sources, limits: limits, keepsOrdinals: keepsOrdinals, choosing: choose,
      after: report, progress: progress)
    guard report.wasDamaged else { return report }
    let reader = try ArchiveReader(storage.map(), limits: limits, ignoresTail: true)
    report.note(reader.generation.number > 0 ? try reader.verify(progress: progress) : nil)
    return report
  }

  /// Repairs what can be repaired, and leaves it to the caller to find out what is lost.
  ///
  /// - Parameter survey: What a survey of the file as it is has found; nil to make one.
  /// - Throws: As ``run(_:from:limits:keepsOrdinals:choosing:after:progress:)`` does.
  package static func mend(
    _ storage: any ArchiveStorage, _ survey: Survey? = nil, from sources: [ArchiveReader],
    limits: ArchiveLimits, keepsOrdinals: Bool, choosing choose: TailChoice?,
    after report: Report, progress: @escaping (UInt64, UInt64) -> Void
  ) throws -> Report {
    try storage.lock()
    var repair = ArchiveRepair(
      storage: storage, sources: sources, limits: limits, keepsOrdinals: keepsOrdinals,
      choose: choose, progress: progress, report: report, known: survey)
    for _ in 0..<maximumRounds {
      let before = (repair.report.changes, try storage.size)
      if let survey = try repair.run() {
        let isCurrent = try (repair.report.changes, storage.size) == before
        try repair.heal(survey, isCurrent: isCurrent)
      }
      if try (repair.report.changes, storage.size) == before { break }
    }
    // What was written in the place of something else counts, too.
    if repair.report.changes > 0 { try storage.commit() }
    return repair.report
  }

  /// More rounds are never needed, as far as is known.
  package static let maximumRounds = 8

  /// Repairs index and footers.
  ///
  /// - Returns: What was found, if not everything holds.
  private mutating func run() throws -> Survey? {
    // A file of a later version is not touched.
    _ = try ArchiveReader.lastGeneration(of: storage.map())
    var survey = try survey()
    guard survey.foundAnything else { throw ArchiveError(.notAnArchive) }
    if !(survey.isWhole && survey.isTiled) {
      report.wasDamaged = true
      // Bit for bit, before anything is made again by other means.
      let healed = try ParityHealing.heal(storage, survey)
      report.bytesHealed += healed
      if healed > 0 { survey = try self.survey() }
    }
    if let place = survey.damagedNote {
      let note = ArchiveNote.frame
      try storage.write(note.span, at: UInt64(place))
      try storage.synchronize()
      report.isNoteRestored = true
      survey = try self.survey()
    }
    var restoring = GenerationRestoring(storage, survey)
    try storage.map().withBytes { (bytes) throws in try restoring.run(in: bytes) }
    report.segments += restoring.segments
    report.footers += restoring.footers
    let hasAdopted = try adoptTail()
    if restoring.hasWritten || hasAdopted { survey = try self.survey() }
    let file = try storage.map()
    let generation = try ArchiveReader.lastGeneration(of: file)
    try file.withBytes { (bytes) throws in try finish(survey, generation, in: bytes) }
    return survey.isWhole && survey.isTiled ? nil : survey
  }

  /// Surveys the file as it is.
  ///
  /// - Throws: ``ArchiveError`` if another archive begins in it.
  private mutating func survey() throws -> Survey {
    let file = try storage.map()
    let survey = try known.take() ?? Survey(file, limits: limits, progress: progress)
    try file.withBytes { bytes throws in try survey.refuseFurtherArchives(in: bytes) }
    return survey
  }

  /// Ends what an interrupted write has left after the last footer, as a writer would.
  ///
  /// - Returns: Whether anything was changed.
  private mutating func adoptTail() throws -> Bool {
    let file = try storage.map()
    do {
      guard let committed = try ArchiveWriter.committed(of: file),
        committed.generation.committedLength < UInt64(file.count),
        try file.damagedEnd(behind: committed.generation) == nil
      else { return false }
      // A writer makes voids of damaged frames, and gives what follows other ordinals.
      let adoption = TailAdoption(
        storage: storage, file: file, committed: committed, keepsOrdinals: keepsOrdinals,
        choose: choose)
      let outcome = try adoption.run(carHeader: [])
      report.isReindexed = report.isReindexed || outcome.sectionCount > 0
      report.bytesCutOff += outcome.bytesCutOff
      return true
    } catch let error as ArchiveError where error.faultKind != .system {
      // A writer would refuse: more than the end is damaged, and what follows decides.
      return false
    }
  }

  /// Writes the lost sections again that can still be read somewhere.
  ///
  /// - Parameter isCurrent: Whether the file is as it was surveyed.
  private mutating func heal(_ survey: Survey, isCurrent: Bool) throws {
    let count = try writeAgain(survey)
    report.sectionsHealed += count
    report.bytesVoided += try voidNeedless(isCurrent && count == 0 ? survey : nil)
  }

  /// Appends an index and a footer if what is there is not what the last footer says, and makes
  /// what is left over void.
  private mutating func finish(
    _ survey: Survey, _ generation: Generation?, in bytes: Span<UInt8>
  ) throws {
    // An index that cannot be read lists nothing.
    let index = generation.flatMap { try? ArchiveIndex($0, in: bytes) }
    let isIndexed = survey.isIndexed(generation, index, in: bytes)
    // What was committed and cannot be read stays where it is, and everything goes behind it.
    let isEndDamaged = try storage.map().damagedEnd(behind: generation) != nil
    let end = isEndDamaged ? bytes.count : survey.end
    let hasTail = generation.map { UInt64(end) > $0.committedLength } ?? true
    let isRepaired = generation?.features.isRepaired ?? false
    let isRegular = survey.isRegular(generation, index, in: bytes)
    let learned = try learnedKeys(survey, generation, in: bytes)
    guard !learned.isEmpty || !isIndexed || hasTail || !isRegular && !isRepaired else {
      return try cutOff(behind: end)
    }
    let manifests = survey.unlinkedManifests(.empty, in: bytes)
    // Without a footer and without a manifest there is nothing to make count.
    if generation == nil, manifests.isEmpty,
      survey.allManifests.allSatisfy({ survey.frames[$0.frame].isIntact })
    {
      throw ArchiveError(.noFooter)
    }
    try cutOff(behind: end)
    // A segment has a frame at least, and may have none that holds.
    guard !survey.table.isEmpty else { return }
    let isClean =
      isIndexed && survey.isWhole && (isRegular || isRepaired) && !survey.repeatsSections
    // A new index tells no more what was lost, so only now it is known whether a gap held any data.
    if survey.isWhole {
      report.bytesVoided += try storage.void(survey.gaps.filter { $0.lowerBound < end })
      if report.bytesVoided > 0 { try storage.synchronize() }
    }
    try append(
      survey, generation, keepsIndex: isIndexed && learned.isEmpty, learned,
      head: survey.head(of: manifests, after: generation),
      required: isClean ? 0 : FeatureFlags.repaired, at: end, in: bytes)
    report.isReindexed = true
  }

  private func append(
    _ survey: Survey, _ generation: Generation?, keepsIndex: Bool, _ learned: [UInt64: UInt64],
    head: Generation.Head?, required: UInt64, at end: Int, in bytes: Span<UInt8>
  ) throws {
    var log = FrameLog(storage: storage, end: UInt64(end), streamLength: survey.contentLength)
    var segments = generation?.segments ?? []
    if !keepsIndex || survey.sectionCount > generation?.sectionCount ?? 0 {
      (log, segments) = try log.appendIndex(
        to: [], newSections: Int(survey.sectionCount), newFrames: survey.frames.count
      ) {
        survey.segmentBuilder(
          (generation?.features ?? .ofNewFile).indexForm, from: $0, learned: learned, in: bytes)
      }
    }
    try log.commit(
      after: generation, sectionCount: survey.sectionCount, head: head, segments: segments,
      required: required)
  }

  /// Cuts off what follows everything that holds.
  private mutating func cutOff(behind end: Int) throws {
    let size = try storage.size
    guard size > UInt64(end) else { return }
    report.bytesCutOff += size - UInt64(end)
    try storage.truncate(to: UInt64(end))
    try storage.synchronize()
  }
}

extension Survey {
  /// Whether two sections have one key, as where the ends of two copies of an archive were joined.
  fileprivate var repeatsSections: Bool {
    let sorted = (0..<keys.count).map { keys[$0] }.sorted()
    return zip(sorted, sorted.dropFirst()).contains { $0 == $1 }
  }

  /// Whether the live index names every frame that lies before the footer, its checksums hold, and
  /// nothing after the footer stands for what it names elsewhere.
  fileprivate func isIndexed(
    _ generation: Generation?, _ index: ArchiveIndex?, in file: Span<UInt8>
  ) -> Bool {
    guard let generation, let index, index.firstDamaged(in: file) == nil else { return false }
    var entries: [UInt64: FrameEntry] = [:]
    for entry in index.frames(in: file) { entries[entry.offset] = entry }
    return frames.allSatisfy { frame in
      guard frame.isIntact else { return true }
      return frame.offset < generation.footerOffset
        ? entries[frame.offset] == frame.entry : frame.firstOrdinal >= generation.sectionCount
    }
  }

  /// Whether everything before the last footer that is not a data frame is as a writer leaves it,
  /// or is known to count no longer.
  fileprivate func isRegular(
    _ generation: Generation?, _ index: ArchiveIndex?, in file: Span<UInt8>
  ) -> Bool {
    guard let generation else { return false }
    let intact = Set(frames.filter(\.isIntact).map(\.offset))
    let listed = (index?.frames(in: file) ?? []).filter { !intact.contains($0.offset) }
      .map(\.range).sorted { $0.lowerBound < $1.lowerBound }
    return landmarks.allSatisfy { entry in
      guard case .gap(let range, _) = entry.landmark else {
        return generation.features.isRepaired || entry.landmark.flaw == nil
      }
      // Lost data that the index lists stays as it is.
      return range.lowerBound >= end
        || listed.has(range.lowerBound) && listed.has(range.upperBound - 1)
    }
  }
}
