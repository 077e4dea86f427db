/// The 16 bytes that begin the payload of every skippable frame of an archive and occur nowhere
/// else in it (FORMAT 3.3).
///
/// Because data frames are written so that they never contain them, a search for these bytes finds
/// the index and the footers of a file, also of a damaged one, and also when a blob in it is an
/// archive or a forgery of one.
package enum ArchiveMagic {
  /// How many there are.
  package static let length = 16

  /// The bytes.
  package static let bytes: [UInt8] = [
    0xf0, 0x9f, 0x9a, 0x97, 0xf0, 0x9f, 0x93, 0xa6, 0xfe, 0xc9, 0x8a, 0xe5, 0xb1, 0xd7, 0x9c, 0x83,
  ]

  /// The first four bytes, as a little-endian number.
  static let firstWord: UInt32 = 0x979a_9ff0

  /// Bytes 0 … 7 and 8 … 15 as little-endian words.
  private static let first: UInt64 = 0xa693_9ff0_979a_9ff0
  private static let second: UInt64 = 0x839c_d7b1_e58a_c9fe

  /// Bytes k … k + 7 as a word.
  @inline(__always)
  private static func window(_ k: UInt64) -> UInt64 {
    k == 0 ? first : first >> (8 * k) | second << (64 - 8 * k)
  }

  /// Whether the bytes at `offset` are the magic.
  @inline(__always)
  package static func isAt(_ offset: Int, in bytes: Span<UInt8>) -> Bool {
    guard offset >= 0, offset <= bytes.count - length else { return false }
    return bytes.u64(offset) == first && bytes.u64(offset + 8) == second
  }

  /// The first place at or after `start` where the magic occurs in full.
  ///
  /// Every occurrence covers one whole word of any grid of words, so one word in eight bytes is
  /// examined; and as all bytes of the magic are 80 or more, nearly every word is dismissed by its
  /// high bits.
  package static func next(in bytes: Span<UInt8>, from start: Int = 0) -> Int? {
    // The grid begins at `start`, so an occurrence there is met at its first word.
    var place = max(start, 0)
    let end = bytes.count - 8
    while place <= end {
      place = unsafe bytes.withUnsafeBytes { buffer in
        unsafe Self.firstHighWord(buffer, from: place, to: end)
      }
      guard place <= end else { return nil }
      let word = bytes.u64(place)
      for k in 0..<UInt64(8) where word == window(k) {
        let candidate = place - Int(k)
        if candidate >= start, isAt(candidate, in: bytes) { return candidate }
      }
      place += 8
    }
    return nil
  }

  /// The same in a file that is too large to stay in memory as it is read.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - start: Where the search begins.
  ///   - release: Releases the pages that have been read: called where the search passes a multiple
  ///     of 16 MiB.
  package static func next(in file: Span<UInt8>, from start: Int, release: () -> Void) -> Int? {
    var place = max(start, 0)
    while place < file.count {
      let end = min(file.count, (place / searchedAtOnce + 1) * searchedAtOnce)
      // An occurrence that begins before `end` may stick out.
      let searched = file.extracting(first: min(file.count, end + length - 1))
      if let found = next(in: searched, from: place) { return found }
      release()
      place = end
    }
    return nil
  }

  private static let searchedAtOnce = 16 << 20

  /// The first place of the grid from `start` to `end` whose word has all its high bits set, or one
  /// after `end`.
  ///
  /// This is what all bytes that are written and verified pass through.
  @inline(__always)
  private static func firstHighWord(_ bytes: UnsafeRawBufferPointer, from start: Int, to end: Int)
    -> Int
  {
    let highBits: UInt64 = 0x8080_8080_8080_8080
    var place = start
    while place <= end {
      let word = unsafe bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)
      if word & highBits == highBits { return place }
      place += 8
    }
    return place
  }

  /// How many bytes are searched at a time from the back.
  private static let window = 65_536

  /// Searches from the back, and returns the first thing that `body` makes of a place.
  ///
  /// - Parameters:
  ///   - end: What is looked for begins before it.
  ///   - count: How many bytes there are.
  ///   - read: Reads a range of them; it may come back shorter.
  ///   - body: Called with each place where the magic occurs, the last first.
  package static func last<Value>(
    before end: Int, of count: Int, read: (Range<Int>) throws -> [UInt8],
    _ body: (Int) throws -> Value?
  ) rethrows -> Value? {
    var start = min(end, count)
    while start > 0 {
      let upper = start
      start = max(0, upper - window)
      // Each window overlaps the next by what an occurrence may stick out.
      let part = try read(start..<min(upper + length - 1, count))
      var (places, place) = ([Int](), 0)
      while let hit = next(in: part.span, from: place), start + hit < upper {
        places.append(start + hit)
        place = hit + length
      }
      for place in places.reversed() {
        if let value = try body(place) { return value }
      }
    }
    return nil
  }
}
