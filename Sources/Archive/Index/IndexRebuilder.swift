internal import IPLD

/// Reads the index from the data frames, which are the truth (FORMAT 7).
///
/// Where something is damaged, what came before it keeps its ordinals. What comes behind gets them back if an index segment
/// that holds, dead or alive, says where its frame's sections stand; otherwise it is found by CID only.
package struct IndexRebuilder {
  /// What was found.
  package struct Result: Sendable {
    package let index: RebuiltIndex
    /// How many sections have an ordinal that is certain, from 0 without a gap.
    package let certainCount: UInt64
    /// The length of the content of all frames that hold.
    package let streamLength: UInt64
    /// Where the last frame that holds ends.
    package let end: UInt64
    /// Whether nothing was damaged.
    package let isWhole: Bool
  }

  private var entries: [RebuiltIndex.Entry] = []
  private var frames: [FrameEntry] = []
  /// For each frame, how many entries there are up to its end.
  private var entryEnds: [Int] = []
  private var anchors: [Int] = []
  private var next: UInt64 = 0
  private var certainCount: UInt64?
  private var streamLength: UInt64 = 0
  private var end: UInt64 = 0
  private var foundAnything = false

  /// Walks the first `limit` bytes of a file.
  ///
  /// - Throws: ``ArchiveError`` if there is nothing in it that an archive has.
  package static func rebuild(_ file: MappedFile, limit: Int) throws -> Result {
    var rebuilder = IndexRebuilder()
    var scan = ArchiveScan(limit: limit, known: nil)
    try scan.run(file) { event in rebuilder.take(event) }
    guard rebuilder.foundAnything else { throw ArchiveError(.notAnArchive) }
    file.withBytes { bytes in rebuilder.anchor(in: bytes.extracting(first: limit)) }
    return Result(
      index: RebuiltIndex(entries: rebuilder.entries, frames: rebuilder.frames),
      certainCount: rebuilder.certainCount ?? rebuilder.next,
      streamLength: rebuilder.streamLength, end: rebuilder.end,
      isWhole: rebuilder.certainCount == nil)
  }

  private mutating func take(_ event: ArchiveScan.Event) {
    switch event {
    case .header(let frame, let failure):
      guard failure == nil else { return }
      foundAnything = true
      streamLength += UInt64(frame.contentSize)
      end = UInt64(frame.end)
    case .frame(let frame, _, let report):
      take(frame, report)
    case .skippable(let frame):
      foundAnything = true
      if frame.kind == .indexSegment { anchors.append(frame.offset) }
      end = UInt64(frame.end)
    case .gap:
      lose()
    case .lost, .misplaced: lose()
    case .cutShort: break
    }
  }

  private mutating func take(_ frame: DataFrame, _ report: FrameReport) {
    guard report.failure == nil else {
      if !report.isContinuation {
        for found in report.salvaged {
          entries.append(.init(key: found.key, ordinal: next + UInt64(found.index)))
        }
        if !report.salvaged.isEmpty {
          append(frame, report, firstOrdinal: next)
          foundAnything = true
        }
        // How many sections it held is not known.
        lose()
      }
      return
    }
    foundAnything = true
    streamLength += UInt64(frame.contentSize)
    end = UInt64(frame.end)
    guard !report.isContinuation else {
      append(frame, report, firstOrdinal: next - min(next, 1))
      return
    }
    let first = next
    for key in report.keys {
      entries.append(.init(key: key, ordinal: next))
      next += 1
    }
    append(frame, report, firstOrdinal: first)
  }

  private mutating func append(_ frame: DataFrame, _ report: FrameReport, firstOrdinal: UInt64) {
    frames.append(
      FrameEntry(
        offset: UInt64(frame.offset), checksum: report.checksum, firstOrdinal: firstOrdinal,
        storedLength: UInt32(clamping: frame.length)))
    entryEnds.append(entries.count)
  }

  /// From here on, ordinals are provisional.
  private mutating func lose() {
    if certainCount == nil {
      certainCount = next
      next = RebuiltIndex.lostBase
    }
    // Far enough that what a damaged frame held of sections cannot run into the next.
    next += UInt64(ArchiveLimits.frameContent)
  }

  /// Gives frames behind damage the ordinals that a segment knows for them.
  private mutating func anchor(in file: Span<UInt8>) {
    guard certainCount != nil, !anchors.isEmpty else { return }
    let firstLost =
      frames.firstIndex { $0.firstOrdinal >= RebuiltIndex.lostBase } ?? frames.count
    guard firstLost < frames.count else { return }
    for offset in anchors {
      // A skippable frame of this kind that is no segment says nothing.
      guard let segment = try? IndexSegment(file, at: offset) else { continue }
      for number in 0..<segment.frameCount {
        let entry = segment.frameEntry(number, in: file)
        guard let index = lostFrame(at: entry.offset, from: firstLost) else { continue }
        let old = frames[index]
        guard old.firstOrdinal >= RebuiltIndex.lostBase,
          entry.firstOrdinal < RebuiltIndex.lostBase
        else { continue }
        frames[index] = FrameEntry(
          offset: old.offset, checksum: old.checksum, firstOrdinal: entry.firstOrdinal,
          storedLength: old.storedLength)
        let firstEntry = index == 0 ? 0 : entryEnds[index - 1]
        for number in firstEntry..<entryEnds[index] {
          entries[number].ordinal =
            entry.firstOrdinal + (entries[number].ordinal - old.firstOrdinal)
        }
      }
    }
  }

  /// The number of the frame at `offset`; frames are in the order of the file here.
  private func lostFrame(at offset: UInt64, from first: Int) -> Int? {
    var (low, high) = (first, frames.count)
    while low < high {
      let middle = low + (high - low) / 2
      if frames[middle].offset < offset { low = middle + 1 } else { high = middle }
    }
    return low < frames.count && frames[low].offset == offset ? low : nil
  }
}
