import Archive
import IPLD

/// What is intact in a file, found by a forward walk that is written from FORMAT 7.1 alone.
///
/// It shares nothing with the library's survey but zstd, xxHash and CIDs. It knows no ordinals: a
/// section is intact wherever it lies, if it hashes to its CID.
struct ForwardWalk {
  /// The bodies of the sections that are intact.
  private(set) var bodies: [CID: [UInt8]] = [:]
  /// Where the frames begin that they lie in.
  private(set) var places: [CID: [Int]] = [:]
  /// Of these, those that lie in frames that hold.
  private(set) var inWholeFrames: Set<CID> = []
  /// Of these, those that are alone in their frame, as manifests are, in the order of the file.
  private(set) var alone: [CID] = []
  /// Those that lie before the last footer that holds and is in place.
  private(set) var beforeLastFooter: Set<CID> = []
  /// Where footers lie that hold and are in place.
  private(set) var footers: [Range<Int>] = []
  /// Where indexes, footers and voids lie, and data frames with one section, as manifests have.
  private(set) var landmarks: [Range<Int>] = []
  /// Where whole frames without sections lie, as archives begin with.
  private(set) var beginnings: Set<Int> = []
  /// Where voids lie whose checksums do not hold.
  private(set) var damagedVoids: [Int] = []

  private let file: [UInt8]
  private let seams: [Int]
  /// Where frames end by the index segments that hold, by where they begin; of a segment that was
  /// moved, also as if they had been moved with it.
  private var ends: [Int: [Int]] = [:]

  private static let magic: [UInt8] = [
    0xf0, 0x9f, 0x9a, 0x97, 0xf0, 0x9f, 0x93, 0xa6, 0xfe, 0xc9, 0x8a, 0xe5, 0xb1, 0xd7, 0x9c, 0x83,
  ]
  private static let data: UInt32 = 0xfd2f_b528
  private static let skippable: UInt32 = 0x184d_2a5c
  private static let void: UInt32 = 0x184d_2a50
  private static let longestContent = 4 << 20 + 2093

  /// Walks through a file.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - seams: Where archives begin that were glued after the first: no frame continues after one.
  init(_ file: [UInt8], seams: [Int] = []) {
    (self.file, self.seams) = (file, seams)
    readSegments()
    let zstd = ZstdDecompressor()
    var place = 0
    while place < file.count {
      if let end = skippableEnd(at: place) {
        if number(place) == Self.skippable { noteFooter(place..<end) }
        landmarks.append(place..<end)
        place = end
      } else if let frame = dataFrame(at: place) {
        let stored = file.span.extracting(place..<min(frame.end, file.count))
        if let content = zstd.decompress(stored, size: frame.size) {
          let count = take(content, of: place, isWhole: true)
          if count < 2 { landmarks.append(place..<frame.end) }
          if count == 0 { beginnings.insert(place) }
          place = frame.end
        } else {
          _ = take(zstd.salvage(stored, size: frame.size), of: place, isWhole: false)
          place = resume(behind: place, endByBlocks: frame.end, zstd)
        }
      } else {
        if isVoid(at: place) { damagedVoids.append(place) }
        place = resume(behind: place, endByBlocks: nil, zstd)
      }
    }
  }

  // MARK: Frames

  private func number(_ place: Int) -> UInt32? {
    guard place + 4 <= file.count else { return nil }
    return (0..<4).reduce(0) { $0 | UInt32(file[place + $1]) << (8 * UInt32($1)) }
  }

  private func long(_ place: Int) -> UInt64 {
    (0..<8).reduce(0) { $0 | UInt64(file[place + $1]) << (8 * UInt64($1)) }
  }

  /// The end of the skippable frame or void that holds and begins here.
  private func skippableEnd(at place: Int) -> Int? {
    guard let first = number(place), let rest = number(place + 4) else { return nil }
    let end = place + 8 + Int(rest)
    guard first == Self.skippable || first == Self.void, end <= file.count else { return nil }
    func hasChecksum() -> Bool {
      XXH64.hash(file.span.extracting(place..<end - 8)) == long(end - 8)
    }
    if first == Self.skippable {
      guard rest >= 28, file[place + 8..<place + 24].elementsEqual(Self.magic) else { return nil }
      return hasChecksum() ? end : nil
    }
    if rest >= 8 { return hasChecksum() ? end : nil }
    return file[place + 8..<end].allSatisfy { $0 == 0 } ? end : nil
  }

  /// Whether a void begins here that fits, be it damaged.
  private func isVoid(at place: Int) -> Bool {
    guard number(place) == Self.void, let rest = number(place + 4) else { return false }
    return place + 8 + Int(rest) <= file.count
  }

  /// The content size and the end of a data frame of the one form, of which no more may be missing
  /// than bytes of its checksum.
  private func dataFrame(at place: Int) -> (size: Int, end: Int)? {
    guard number(place) == Self.data, place + 9 <= file.count,
      let width = [0x24: 1, 0x64: 2, 0xa4: 4][file[place + 4]]
    else { return nil }
    let stored = (0..<width).reduce(0) { $0 | Int(file[place + 5 + $1]) << (8 * $1) }
    let size = stored + (width == 2 ? 256 : 0)
    guard size > 0, size <= Self.longestContent else { return nil }
    var next = place + 5 + width
    while next + 3 <= file.count {
      let header = (0..<3).reduce(0) { $0 | Int(file[next + $1]) << (8 * $1) }
      let (kind, length) = (header >> 1 & 3, header >> 3)
      guard kind < 3, length <= 1 << 17 else { return nil }
      next += 3 + (kind == 1 ? 1 : length)
      if header & 1 == 1 {
        let isTorn = next > file.count || seams.contains { place < $0 && $0 < next }
        return isTorn ? nil : (size, next + 4)
      }
    }
    return nil
  }

  /// Where to continue after something that does not hold.
  private func resume(behind place: Int, endByBlocks: Int?, _ zstd: ZstdDecompressor)
    -> Int
  {
    let begun = [Self.data, Self.skippable, Self.void]
    let end = ((ends[place] ?? []) + [endByBlocks].compactMap(\.self)).first { end in
      end > place && (end == file.count || number(end).map(begun.contains) == true)
    }
    for next in place + 1..<max(place + 1, end ?? file.count) {
      // What looks like a frame inside a damaged one may be a part of a blob.
      guard end == nil || ends[next] != nil else { continue }
      guard file[next] == 0x28 || file[next] == 0x5c || file[next] == 0x50 else { continue }
      if skippableEnd(at: next) != nil { return next }
      guard let frame = dataFrame(at: next), frame.end <= file.count else { continue }
      let stored = file.span.extracting(next..<frame.end)
      if zstd.decompress(stored, size: frame.size) != nil { return next }
    }
    return end ?? file.count
  }

  // MARK: What is in them

  private mutating func noteFooter(_ range: Range<Int>) {
    guard number(range.lowerBound + 24) == 2, range.count >= 144,
      long(range.upperBound - 16) == UInt64(range.lowerBound)
    else { return }
    footers.append(range)
    beforeLastFooter = Set(bodies.keys)
  }

  /// Reads what the index segments that hold say of frames, wherever they lie.
  private mutating func readSegments() {
    var place = 8
    while place + 44 <= file.count {
      defer { place += 1 }
      guard file[place] == Self.magic[0], file[place + 1] == Self.magic[1],
        file[place..<place + 16].elementsEqual(Self.magic),
        let end = skippableEnd(at: place - 8), number(place + 16) == 1,
        let count = number(place + 36).map(Int.init), end - 8 - 24 * count >= place + 40
      else { continue }
      let rows = (0..<count).map { row in
        let start = end - 8 - 24 * (count - row)
        return (offset: Int(truncatingIfNeeded: long(start)), length: Int(number(start + 20) ?? 0))
      }
      guard let last = rows.max(by: { $0.offset < $1.offset }), last.offset >= 0 else { continue }
      let shift = place - 8 - (last.offset + last.length)
      for row in rows where row.offset >= 0 {
        ends[row.offset, default: []].append(row.offset + row.length)
        guard shift != 0 else { continue }
        ends[row.offset + shift, default: []].append(row.offset + row.length + shift)
        // Bytes were inserted into this frame, or removed from it.
        if abs(shift) <= max(row.length, 4096) {
          ends[row.offset, default: []].append(row.offset + row.length + shift)
        }
      }
    }
  }

  /// Takes the sections of a frame's content that hash to their CIDs.
  ///
  /// - Returns: How many there are.
  private mutating func take(_ content: [UInt8], of frame: Int, isWhole: Bool) -> Int {
    var place = 0
    var found: [CID] = []
    while place < content.count {
      guard let (length, start) = Self.varint(content, place), length > 0,
        length <= content.count - start,
        let (cid, body) = Self.cid(content, start, end: start + length)
      else { break }
      place = start + length
      let bytes = Array(content[body..<place])
      guard cid.multihash.sha256 == SHA256.digest(of: bytes.span) else { continue }
      found.append(cid)
      bodies[cid] = bytes
      places[cid, default: []].append(frame)
      if isWhole { inWholeFrames.insert(cid) }
    }
    if found.count == 1, place == content.count { alone += found }
    return found.count
  }

  private static func varint(_ bytes: [UInt8], _ start: Int) -> (value: Int, end: Int)? {
    var value = 0
    for index in 0..<8 where start + index < bytes.count {
      let byte = bytes[start + index]
      value |= Int(byte & 127) << (7 * index)
      if byte < 128 { return (value, start + index + 1) }
    }
    return nil
  }

  /// A CID of DAG-CBOR or raw bytes with a SHA-256, as everything has that these archives hold: the
  /// codec is not hashed, so what is left of a damaged frame may have another one.
  private static func cid(_ bytes: [UInt8], _ start: Int, end: Int) -> (CID, body: Int)? {
    let length = 36
    guard start + length <= end, bytes[start] == 1, [0x55, 0x71].contains(bytes[start + 1]),
      bytes[start + 2] == 0x12, bytes[start + 3] == 0x20
    else { return nil }
    // What is none of these is not a section.
    guard let cid = try? CID(bytes.span.extracting(start..<start + length)) else {
      return nil
    }
    return (cid, start + length)
  }
}
