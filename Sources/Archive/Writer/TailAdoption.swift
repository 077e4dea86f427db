internal import IPLD

/// Makes what an interrupted write has left after the last footer count, before a writer continues
/// (FORMAT 5.1).
///
/// Everything whole is adopted: each data frame that holds and whose sections hash to their CIDs
/// and are not in the archive yet. Of frames that are torn, or of which the archive has some of the
/// sections, the others are written again after the rest. What is torn no longer counts; at the end
/// it is cut off. If a whole snapshot is among it that follows the head, it is the head then.
///
/// All that a footer needs is on the medium before its first byte is, and data follows an index
/// only after a footer. So where a footer was and something before it does not hold, or where data
/// lies after an index or what is left of a footer, that was damaged later: nothing is changed, and
/// repairing decides. Likewise where no footer is left and the file has several snapshots: only
/// copying writes these, and a copy gets its name when all of it is on the medium.
struct TailAdoption {
  let storage: any ArchiveStorage
  let file: MappedFile
  /// What is committed in it; nil if nothing is.
  let committed: ArchiveReader?
  /// Whether a tail is refused if adopting it would give sections other ordinals, which an order of
  /// blocks may name.
  var keepsOrdinals = false
  /// Decides which snapshots of the tail count; nil to count those that follow the newest.
  var choose: TailChoice?
  /// The manifest that becomes the newest; nil if the tail tells.
  var chosen: CID?
  /// Where what was committed and is damaged ends: nothing before it is cut off or made void; nil if
  /// there is none.
  var damageEnd: UInt64?

  private var generation: Generation? { committed?.generation }

  /// How many sections were adopted, and how many bytes were cut off.
  typealias Outcome = (sectionCount: UInt64, bytesCutOff: UInt64)

  /// Adopts what can be.
  ///
  /// - Parameter carHeader: The header with which an archive begins that has no snapshot yet.
  /// - Throws: ``ArchiveError`` if what was committed is damaged, or the file is another archive of
  ///   which nothing is committed; what the storage throws.
  /// - Returns: What was done.
  func run(carHeader: [UInt8]) throws -> Outcome {
    let (start, size) = (generation?.committedLength ?? 0, UInt64(file.count))
    guard size > start else { return (0, 0) }
    var survey = try Survey(file, after: generation, limits: ArchiveLimits(allowsLarge: true))
    let older = (committed?.index.segments ?? []).map(\.frame.range)
    return try file.withBytes(reading: older + [survey.start..<file.count]) { (bytes) throws in
      try survey.refuseFurtherArchives(in: bytes)
      let remains = survey.remainsOfFooters(after: generation, in: bytes)
      let footers = remains.filter(\.isNext).map(\.offset)
      let (dropped, supersedesDamage) = try dropped(of: survey)
      let last = survey.frames.indices.last { !dropped.contains($0) }
      // Where a footer was, nothing from there on counts.
      let first = survey.frames.partitioningIndex {
        $0.offset >= UInt64(remains.first?.offset ?? file.count)
      }
      let hasLost = survey.hasLost(dropped, before: first)
      let isTorn = last.map { survey.hasLost(dropped, before: $0 + 1, withVoids: true) } ?? false
      let moved = try survey.movedFooters(after: generation) {
        try committed?.knownManifests() ?? []
      }
      guard moved.isEmpty, footers.isEmpty || !hasLost, last ?? -1 < first,
        last.map({ !survey.hasSegment(before: $0) }) ?? true, !keepsOrdinals || !isTorn,
        !isTorn || generation != nil || survey.unlinkedManifests(.empty, in: bytes).count < 2
      else {
        throw ArchiveError(.damagedFooter, offset: footers.first.map { UInt64($0) } ?? start)
      }
      if let place = try writeRemains(of: dropped, survey, in: bytes) {
        let rest = try again(choosing: chosen).run(carHeader: carHeader)
        return (rest.sectionCount, size - place + rest.bytesCutOff)
      }
      survey.drop(dropped)
      var head = isTorn ? generation?.head : try head(survey, claimedBy: footers, in: bytes)
      if let chosen {
        head = self.head(chosen, in: survey) ?? head
      } else if let choose, let committed {
        let adopted = try committed.adopting(survey, file, in: bytes)
        if let choice = try choose(adopted, head?.cid) {
          let place = behindDamage(last.map { survey.frames[$0].end } ?? start)
          // Frames that are not adopted stay until these are on the medium, which say what is where.
          try append(choice.sections, at: place)
          let rest = try again(choosing: choice.head).run(carHeader: carHeader)
          return (rest.sectionCount, size - place)
        }
      }
      if generation == nil, head == nil { try checkHeader(survey, carHeader, in: bytes) }
      guard let last else {
        let place = behindDamage(max(start, UInt64(survey.header?.frame.end ?? 0)))
        try storage.truncate(to: place)
        try storage.synchronize()
        return (0, size - place)
      }
      if damageEnd == nil { try void(dropped, before: last, in: survey) }
      let isRepaired = isTorn || supersedesDamage || damageEnd != nil
      let required = isRepaired ? FeatureFlags.repaired : 0
      let place = try end(survey, behind: last, head, required: required, in: bytes)
      return (survey.sectionCount - survey.firstOrdinal, size - place)
    }
  }

  /// The same of the file as it is now.
  private func again(choosing chosen: CID?) throws -> TailAdoption {
    var next = try TailAdoption(
      storage: storage, file: storage.map(), committed: committed, keepsOrdinals: keepsOrdinals,
      choose: chosen == nil ? choose : nil)
    (next.chosen, next.damageEnd) = (chosen, damageEnd)
    return next
  }

  /// A place where something may be written.
  private func behindDamage(_ place: UInt64) -> UInt64 { max(place, damageEnd ?? 0) }

  /// Ends the tail with sections, each in frames of its own, which are on the medium afterwards.
  ///
  /// They count only with the footer, so an interruption leaves a tail as before.
  private func append(_ sections: [Block], at place: UInt64) throws {
    try storage.truncate(to: place)
    var (end, stored) = (place, [UInt8]())
    for section in sections {
      var content: [UInt8] = []
      CARWriter.appendPrefix(
        section.cid, bodyLength: UInt64(section.bytes.count), to: &content)
      content += section.bytes
      FrameEncoder().encode(content.span, level: 3, into: &stored)
      try storage.write(stored.span, at: end)
      end += UInt64(stored.count)
    }
    try storage.synchronize()
  }

  /// A manifest as the newest: one of the tail, or the newest that was committed.
  private func head(_ manifest: CID, in survey: Survey) -> Generation.Head? {
    guard generation?.head?.cid != manifest else { return generation?.head }
    return survey.allManifests.lazy.filter { $0.shape.cid == manifest }
      .compactMap { survey.head($0) }.first
  }

  /// The newest manifest: the one that the remains of a footer name, or that follows from what is
  /// there.
  private func head(_ survey: Survey, claimedBy footers: [Int], in file: Span<UInt8>) throws
    -> Generation.Head?
  {
    let manifests = survey.unlinkedManifests(committed?.index ?? .empty, in: file)
    for footer in footers {
      guard let claim = Footer.headClaim(in: file, at: footer) else { continue }
      // Forgetting the newest snapshots makes a manifest that was committed before the head.
      let older = try committed?.intact(claim.ordinal).map {
        Generation.Head(
          cid: $0.prefix.cid, ordinal: $0.ordinal, frameOffset: $0.row.entry.offset)
      }
      let heads = manifests.map { survey.head($0) } + [older]
      if let meant = heads.compactMap({ $0 }).first(where: claim.means) { return meant }
    }
    return survey.head(of: manifests, after: generation)
  }

  /// Refuses a file in which another repository was begun.
  private func checkHeader(_ survey: Survey, _ carHeader: [UInt8], in file: Span<UInt8>)
    throws(ArchiveError)
  {
    guard let header = survey.header else { throw ArchiveError(.notAnArchive) }
    guard header.failure == nil, header.frame.rawContent(in: file) == carHeader else {
      throw ArchiveError(.begunOtherwise)
    }
  }

  /// The numbers of the frames that are not adopted: those that do not hold, and those of sections
  /// that are not all there or are in the archive already; and whether something that is adopted
  /// was written because what is committed of it is damaged.
  private func dropped(of survey: Survey) throws -> (numbers: Set<Int>, supersedesDamage: Bool) {
    var dropped: Set<Int> = []
    var isDropping = false
    var supersedesDamage = false
    for (number, frame) in survey.frames.enumerated() {
      if !frame.isContinuation {
        isDropping = !frame.isIntact || survey.incomplete.contains(number)
        if !isDropping {
          let known = try known(frame, survey)
          isDropping = known.isWhole
          supersedesDamage = supersedesDamage || known.isDamaged && !known.isWhole
        }
      }
      if isDropping || !frame.isIntact { dropped.insert(number) }
    }
    return (dropped, supersedesDamage)
  }

  /// Whether a section of a frame is in the archive already, and whole there; and whether what has
  /// its key there is damaged.
  private func known(_ frame: Survey.Frame, _ survey: Survey) throws
    -> (isWhole: Bool, isDamaged: Bool)
  {
    guard let committed else { return (false, false) }
    var isDamaged = false
    for (index, key) in survey.keys(of: frame).enumerated() {
      for ordinal in try committed.candidates(key) {
        guard let cid = try committed.intactCID(of: ordinal) else {
          isDamaged = true
          continue
        }
        if try cid == self.cid(ofSection: index, in: frame) { return (true, isDamaged) }
      }
    }
    return (false, isDamaged)
  }

  private func cid(ofSection index: Int, in frame: Survey.Frame) throws -> CID {
    let range = Int(frame.offset)..<Int(frame.end)
    return try file.withBytes(reading: [range]) { (bytes) throws(ArchiveError) in
      let stored = try DataFrame(bytes, at: Int(frame.offset), limit: Int(frame.end))
      return try FrameDecoder().sections(of: stored, in: bytes).prefix(index).cid
    }
  }

  /// Writes what frames that are not adopted have and the archive has not after the last data
  /// frame, in frames that hold.
  ///
  /// - Returns: Where the file was cut off and they follow; nil if there was nothing.
  private func writeRemains(of dropped: Set<Int>, _ survey: Survey, in file: Span<UInt8>) throws
    -> UInt64?
  {
    var remains = Dictionary(grouping: survey.salvaged, by: \.frame)
      .mapValues { $0.map(\.key) }
    // A frame of one section has nothing else.
    for number in dropped.subtracting(survey.incomplete)
    where survey.frames[number].holdsSections && survey.frames[number].sectionCount > 1 {
      remains[number] = Array(survey.keys(of: survey.frames[number]))
    }
    guard !remains.isEmpty, let start = survey.frames.last.map({ behindDamage($0.end) }) else {
      return nil
    }
    var end = start
    let wanted = Set(remains.values.joined())
    var known: Set<CID> = []
    for (number, frame) in survey.frames.enumerated()
    where frame.holdsSections && !dropped.contains(number) {
      for (index, key) in survey.keys(of: frame).enumerated() where wanted.contains(key) {
        known.insert(try cid(ofSection: index, in: frame))
      }
    }
    var (isCut, stored) = (false, [UInt8]())
    func write(_ content: [UInt8]) throws {
      guard !content.isEmpty else { return }
      if !isCut { try storage.truncate(to: end) }
      isCut = true
      FrameEncoder().encode(content.span, level: 3, into: &stored)
      try storage.write(stored.span, at: end)
      end += UInt64(stored.count)
    }
    for number in remains.keys.sorted() {
      let frame = survey.frames[number]
      let decoded = try decoded(frame, in: file)
      var content: [UInt8] = []
      for number in 0..<decoded.count where !decoded.range(number).isEmpty {
        let (cid, body) = try decoded.section(number)
        let isKnown = try committed?.candidates(cid.sectionKey).contains {
          try committed?.intactCID(of: $0) == cid
        }
        guard isKnown != true, known.insert(cid).inserted else { continue }
        let bytes = Array(decoded.bytes[decoded.range(number)])
        let block = Array(decoded.bytes[body])
        // A manifest has a frame for itself.
        if ManifestShape(cid, block.span) != nil {
          try write(bytes)
        } else {
          content += bytes
        }
      }
      try write(content)
    }
    guard isCut else { return nil }
    try storage.synchronize()
    return start
  }

  /// The sections of a frame, or what is left of them.
  private func decoded(_ frame: Survey.Frame, in file: Span<UInt8>) throws -> DecodedFrame {
    let (decoder, range) = (FrameDecoder(), Int(frame.offset)..<Int(frame.end))
    guard !frame.isIntact else {
      let stored = try DataFrame(file, at: range.lowerBound, limit: range.upperBound)
      return try decoder.sections(of: stored, in: file)
    }
    return DecodedFrame(
      decoder.remains(of: range, in: file), firstOrdinal: 0, place: frame.offset,
      ArchiveError(.damagedFrame("it is incomplete")))
  }

  /// Makes what lies between the adopted frames void, unless it is adopted: nothing of it was ever
  /// committed.
  private func void(_ dropped: Set<Int>, before last: Int, in survey: Survey) throws {
    var ranges = dropped.filter { $0 < last }.map { number in
      Int(survey.frames[number].offset)..<Int(survey.frames[number].end)
    }
    for (count, landmark) in survey.landmarks where count <= last {
      if case .gap(let range, _) = landmark { ranges.append(range) }
    }
    _ = try storage.void(ranges)
  }

  /// Cuts off what follows the last adopted frame, and ends the generation there.
  ///
  /// - Returns: Where the file was cut off.
  private func end(
    _ survey: Survey, behind last: Int, _ head: Generation.Head?, required: UInt64,
    in file: Span<UInt8>
  ) throws -> UInt64 {
    let live = generation?.segments ?? []
    let place = survey.frames[last].end
    let kept = survey.frames.filter { $0.firstOrdinal != .max }
    let streamLength = kept.reduce(
      generation?.streamLength ?? UInt64(survey.header?.frame.contentSize ?? 0)
    ) { $0 + UInt64($1.contentSize) }
    // An existing index segment needs only its footer. To write it again would change what lies
    // before a footer that may be on the medium, should the power fail in the middle.
    var written: (segment: IndexSegment, before: Int)?
    for (count, landmark) in survey.landmarks where count == last + 1 && written == nil {
      written = self.written(landmark, at: place, survey, in: file)
    }
    let end = behindDamage(written.map { UInt64($0.segment.frame.end) } ?? place)
    try storage.truncate(to: end)
    var log = FrameLog(storage: storage, end: end, streamLength: streamLength)
    var segments: [Generation.Segment] = []
    if let written {
      segments = live[..<written.before] + [written.segment.named]
    } else {
      (log, segments) = try log.appendIndex(
        to: live, newSections: Int(survey.sectionCount - survey.firstOrdinal),
        newFrames: kept.count
      ) { builder(survey, from: $0, in: file) }
    }
    try log.commit(
      after: generation, sectionCount: survey.sectionCount, head: head, segments: segments,
      required: required)
    return end
  }

  /// The index segment that was written at a place, if it is what would be written there, and how
  /// many live segments stay before it.
  private func written(
    _ landmark: Survey.Landmark, at place: UInt64, _ survey: Survey, in file: Span<UInt8>
  ) -> (segment: IndexSegment, before: Int)? {
    let live = generation?.segments ?? []
    guard case .segment(let written) = landmark, UInt64(written.frame.offset) == place,
      let before = live.firstIndex(where: { $0.base == written.base })
        ?? (written.base == survey.firstOrdinal ? live.endIndex : nil),
      builder(survey, from: written.base, in: file)
        .isEncoded(in: file, at: written.frame.offset, length: written.frame.length)
    else { return nil }
    return (written, before)
  }

  /// Makes the index segment of what was surveyed, and of the live ones from `base` on.
  private func builder(_ survey: Survey, from base: UInt64, in file: Span<UInt8>)
    -> IndexSegmentBuilder
  {
    survey.segmentBuilder(
      (generation?.features ?? .ofNewFile).indexForm, from: survey.firstOrdinal, in: file
    ).merged(with: committed?.index.segments, from: base, in: self.file)
  }
}

extension Survey {
  /// Whether something before a frame does not hold or is not adopted, or was made void if voids
  /// are requested.
  fileprivate func hasLost(_ dropped: Set<Int>, before count: Int, withVoids: Bool = false) -> Bool
  {
    dropped.contains { $0 < count }
      || landmarks.contains { entry in
        switch entry.landmark {
        case .gap: entry.frameCount < count
        case .void: withVoids && entry.frameCount < count
        case .segment, .footer, .other: false
        }
      }
  }

  /// Whether an index lies before a frame that counts more than is committed: otherwise it is a
  /// copy.
  fileprivate func hasSegment(before number: Int) -> Bool {
    landmarks.contains { entry in
      guard case .segment(let segment) = entry.landmark else { return false }
      return entry.frameCount <= number && segment.end > firstOrdinal
    }
  }

  /// Leaves frames out, and numbers the sections of the others one after the other.
  fileprivate mutating func drop(_ dropped: Set<Int>) {
    allManifests.removeAll { dropped.contains($0.frame) }
    salvaged = []
    tables = nil
    var next = firstOrdinal
    for number in frames.indices {
      if dropped.contains(number) {
        frames[number].isIntact = false
        frames[number].isContinuation = false
        frames[number].sectionCount = 0
        frames[number].firstOrdinal = .max
      } else if frames[number].isContinuation {
        frames[number].firstOrdinal = next - 1
      } else {
        frames[number].firstOrdinal = next
        next += UInt64(frames[number].sectionCount)
      }
    }
    sectionCount = next
  }
}
