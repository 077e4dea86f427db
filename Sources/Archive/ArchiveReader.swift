public import IPLD
internal import Synchronization
public import SystemPackage

/// Reads an archive: any section by its CID or number, or runs of them in a stream.
///
/// Opening costs the footer and the headers of the index segments, whatever the size of the file. Reading needs no lock,
/// works from several threads, and looks only at what was committed when the file was opened.
///
/// 1. Bytes are handed out only from frames whose checksum holds; a body is hashed, too, and one that does not hash to its
///    CID is an error.
/// 2. The index is never believed: what it points to is compared with the whole CID, and when something is not found, or
///    not what it should be, the index is checked, and read from the frames instead if it is damaged.
public final class ArchiveReader: Sendable {
  /// What was committed.
  public let generation: Generation
  /// How many bytes the file has, what is not committed included.
  public let fileSize: UInt64

  let file: MappedFile
  let decoder = FrameDecoder()
  let cache = FrameCache()
  let state: Mutex<State>

  struct State {
    var index: ArchiveIndex
    /// Whether the index is one that can be relied on: its checksums hold, or it was read from the frames.
    var isIndexChecked: Bool
    var recovery: Recovery?
  }

  /// Opens the archive at `path`.
  ///
  /// A file without a footer is read to its end, as far as it goes: that takes as long as verifying it.
  ///
  /// - Throws: ``ArchiveError`` if the file cannot be read, is no archive, or needs a later version.
  public convenience init(path: FilePath) throws { try self.init(try MappedFile(path)) }

  /// Opens the archive that these bytes are.
  ///
  /// - Throws: ``ArchiveError`` as ``init(path:)`` does.
  public init(_ file: MappedFile) throws {
    self.file = file
    fileSize = UInt64(file.count)
    guard let committed = try Self.lastGeneration(of: file) else {
      let found = try IndexRebuilder.rebuild(file, limit: file.count)
      generation = Generation(
        number: 0, footerOffset: 0, previousFooterOffset: nil, committedLength: found.end,
        sectionCount: found.sectionCount, streamLength: found.streamLength, head: nil,
        segments: [])
      let recovery = Recovery(
        interruptedTail: UInt64(file.count) - found.end, rebuild: .noFooter)
      state = Mutex(
        State(index: ArchiveIndex(found.index), isIndexChecked: true, recovery: recovery))
      return
    }
    generation = committed
    let tail = UInt64(file.count) - committed.committedLength
    var recovery = tail > 0 ? Recovery(interruptedTail: tail) : nil
    do throws(ArchiveError) {
      let index = try file.withBytes { (bytes) throws(ArchiveError) in
        try ArchiveIndex(committed, in: bytes)
      }
      state = Mutex(State(index: index, isIndexChecked: false, recovery: recovery))
    } catch {
      let found = try IndexRebuilder.rebuild(file, limit: Int(committed.committedLength))
      recovery = Recovery(
        interruptedTail: tail, rebuild: .damagedIndex(offset: error.offset ?? 0))
      state = Mutex(
        State(index: ArchiveIndex(found.index), isIndexChecked: true, recovery: recovery))
    }
  }

  /// What the last footer that holds says; nil if there is none.
  static func lastGeneration(of file: MappedFile) throws -> Generation? {
    try file.withBytes { (bytes) throws in
      let atEnd = Footer.frame(bytes, endingAt: bytes.count)
      return try (atEnd ?? Footer.last(in: bytes, before: bytes.count, letGo: file.releasePages))
        .map {
          (frame) throws in try Footer.read(bytes, frame)
        }
    }
  }

  /// Lets go of the file's pages, for somebody who looks at many places far from one another.
  package func releasePages() { file.releasePages() }

  /// What had to be done to read the file at all; nil if it is as it should be, as far as has been seen.
  public var recovery: Recovery? { state.withLock { $0.recovery } }

  /// The CAR header with its varint in front, byte for byte.
  ///
  /// - Throws: ``ArchiveError`` if frame 0 is damaged.
  public var carHeader: [UInt8] {
    get throws {
      try withFile { (file) throws in
        let frame = try DataFrame(file, at: 0, limit: file.count)
        guard frame.isRaw, RawFrame.checksumHolds(of: frame, in: file) else {
          throw ArchiveError(.damagedFrame("it holds the CAR header"), offset: 0)
        }
        return RawFrame.content(of: frame, in: file)
      }
    }
  }

  /// The number of the section with this CID; nil if it is not in the archive.
  ///
  /// - Throws: ``ArchiveError`` if the frame it would be in is damaged, or damage before it leaves its number unknown.
  public func ordinal(of cid: CID) throws -> UInt64? {
    guard let ordinal = try locate(cid)?.ordinal else { return nil }
    guard ordinal < RebuiltIndex.lostBase else { throw ArchiveError(.lostOrdinal(cid)) }
    return ordinal
  }

  /// The section with this CID; nil if it is not in the archive.
  ///
  /// Behind damage its number may be one that stands for an unknown one.
  ///
  /// - Throws: ``ArchiveError`` if the frame it would be in is damaged.
  public func section(of cid: CID) throws -> Section? { try locate(cid)?.section }

  /// What stands for the numbers of sections whose numbers are lost with damage before them.
  package var lostOrdinals: [UInt64] {
    index.rebuilt?.entries.lazy.map(\.ordinal).filter { $0 >= RebuiltIndex.lostBase }.sorted() ?? []
  }

  /// The section with this number.
  ///
  /// - Throws: ``ArchiveError`` if there is none, or its frame is damaged.
  public func section(at ordinal: UInt64) throws -> Section {
    try locate(ordinal).section
  }

  /// The body of the section with this CID, all of it; nil if it is not in the archive.
  ///
  /// - Parameters:
  ///   - cid: Its CID.
  ///   - limit: The longest body that is read into memory.
  /// - Throws: ``ArchiveError`` if it is longer, or damaged.
  /// - Returns: The body.
  public func body(of cid: CID, limit: Int = 64 << 20) throws -> [UInt8]? {
    guard let location = try locate(cid) else { return nil }
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
  /// Each piece comes from a frame whose checksum holds. A body of 64 KiB or more is hashed while it streams, so that what
  /// was handed out may be thrown away only at the end; a smaller one is hashed before.
  ///
  /// - Throws: ``ArchiveError`` if it is damaged, and what `chunk` throws.
  /// - Returns: Whether the archive has the section.
  @discardableResult
  public func read(_ cid: CID, each chunk: (Span<UInt8>) throws -> Void) throws -> Bool {
    guard let location = try locate(cid) else { return false }
    try stream(location, chunk)
    return true
  }

  /// Visits the sections with these numbers in order, small and large, without holding a large one in memory.
  ///
  /// - Parameters:
  ///   - ordinals: Which; all of them by default.
  ///   - begin: Called with each section; what it answers decides whether the body is read.
  ///   - chunk: Called with the pieces of the body, none if it is empty, one if it is under 64 KiB.
  ///   - end: Called when a body that was read has proved to be the right one.
  /// - Throws: ``ArchiveError`` at the first section that is damaged, and what the closures throw.
  public func forEachSection(
    in ordinals: Range<UInt64>? = nil, begin: (Section) throws -> SectionVisit,
    chunk: (Span<UInt8>) throws -> Void, end: (Section) throws -> Void = { _ in }
  ) throws {
    for ordinal in ordinals ?? 0..<generation.sectionCount {
      let location = try locate(ordinal)
      switch try begin(location.section) {
      case .stop: return
      case .skip: continue
      case .read:
        try stream(location, chunk)
        try end(location.section)
      }
    }
  }

  /// Writes sections as they stand in a CAR, `varint(length) CID body`, run by run.
  ///
  /// A run within a pack is one piece; a pack is decompressed once, as long as no more than sixteen others come between.
  ///
  /// - Parameters:
  ///   - runs: Which sections, in the order they are to have.
  ///   - isHashing: Whether every body is hashed. Without it the checksums of the frames are what is checked.
  ///   - sink: Called with the bytes, in pieces of at most 4 MiB.
  /// - Throws: ``ArchiveError`` at the first section that is damaged, and what `sink` throws.
  public func copySections(
    _ runs: some Sequence<Range<UInt64>>, isHashing: Bool = true,
    to sink: (Span<UInt8>) throws -> Void
  ) throws {
    for run in runs {
      var ordinal = run.lowerBound
      while ordinal < run.upperBound {
        let location = try locate(ordinal)
        switch location.body {
        case .pack(let frame, let index):
          // What is left of a damaged pack is looked at section by section.
          let count =
            frame.isDamaged
            ? 1 : Int(min(run.upperBound - ordinal, UInt64(frame.count - index)))
          if isHashing || frame.isDamaged {
            for number in index..<index + count { try check(frame, number) }
          }
          let bytes = frame.bytes
          try sink(bytes.span.extracting(frame.range(from: index, to: index + count)))
          ordinal += UInt64(count)
        case .frames:
          var prefix: [UInt8] = []
          SectionPrefix.append(
            location.prefix.cid.bytes, bodyLength: location.prefix.bodyLength, to: &prefix)
          try sink(prefix.span)
          try stream(location, isHashing: isHashing, sink)
          ordinal += 1
        }
      }
    }
  }
}
