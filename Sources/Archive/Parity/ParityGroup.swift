// A page of the description of a group, FORMAT 4.5:
//
// offset  size  field
//      0    28  skippable frame, kind 4
//     28     1  u8 the block size, as a power of two: 9 to 12
//     29     1  u8 k: data rows
//     30     1  u8 m: parity rows
//     31     1  u8 the percentage that was asked for
//     32     4  u32 number of the page, from 0: the first half stands before the parity
//     36     4  u32 length of the footer that is protected; 0 for none
//     40     8  u64 where the protected range begins
//     48     8  u64 where it ends
//     56     8  u64 where the first page begins
//     64     8  u64 mask
//     72     …  its part of the table of checksums, or parity of these parts
// last 16     8  u64 offset of this frame itself
//  last 8     8  XXH64
//
// The parity, FORMAT 4.5:
//
//      0    28  skippable frame, kind 5
//     28     …  m rows, one after the other, each byte xor the mask's
//  last 8     8  XXH64

/// A range of the file, the parity that protects it, and where all of that lies.
///
/// The range is cut into blocks at multiples of the block size, counted from the start of the file,
/// so that a lost sector of a disk is a lost block. The footer after the parity makes further
/// blocks. The blocks, in order, fill `k` data rows of `columns` blocks each; what is missing of
/// the first, the last and the footer's last block, and of the last row, counts as zeros. Each
/// column of all rows is one code word of an `ErasureCode`, with blocks for symbols: neighbouring
/// blocks belong to different code words.
package struct ParityGroup: Hashable, Sendable {
  /// The most bytes that a group protects.
  static let maximumRange: UInt64 = 512 << 20
  /// The most parity that a group has, which is in memory while it is made.
  static let maximumParity = 40 << 20
  /// The disk sectors of which any one may be lost of the smallest group.
  private static let sector = 4096
  /// The longest range that is cut into blocks smaller than a sector.
  private static let longestOfSmallBlocks = 4 << 20
  /// The most pages of the table: as many again are their parity.
  private static let maximumPages = 120
  /// How many bytes of the table a page has at most, unless there would be too many pages.
  private static let usualPage = 4000
  /// Where the part of the table begins in a page.
  static let pageHeader = 72
  /// No page is longer.
  static let longestPage = 128 << 10

  let blockBits: Int
  let dataRows: Int
  let parityRows: Int
  /// How much parity there is for the protected bytes, as it was asked for.
  package let percent: Int
  /// What is protected, beside the footer.
  package let range: Range<UInt64>
  let footerLength: Int
  /// Where the first page begins.
  package let offset: UInt64
  /// What the stored parity and the stored checksums are xored with, so that the magic does not
  /// occur in them; 0 unless it would.
  let mask: UInt64

  var blockSize: Int { 1 << blockBits }
  /// Where the first block would begin if it were whole.
  private var base: UInt64 { (range.lowerBound >> UInt64(blockBits)) << UInt64(blockBits) }
  private var rangeBlocks: Int { Int(range.upperBound - base).divided(by: blockSize) }
  /// How many blocks there are.
  var blockCount: Int { rangeBlocks + footerLength.divided(by: blockSize) }
  /// How many blocks a row has.
  var columns: Int { blockCount.divided(by: dataRows) }
  var rowLength: Int { columns << blockBits }
  /// How many rows of both kinds there are.
  var rows: Int { dataRows + parityRows }
  /// How many checksums the table has: of each block of the data, then of each of the parity.
  var sumCount: Int { blockCount + parityRows * columns }
  /// How many pages the table has.
  var pageCount: Int {
    min(Self.maximumPages, (8 * sumCount).divided(by: Self.usualPage))
  }
  /// How many bytes of the table each page has.
  var pagePayload: Int { sumCount.divided(by: pageCount) * 8 }
  var pageLength: Int { Self.pageHeader + pagePayload + 16 }
  var parityOffset: UInt64 { offset + UInt64(pageCount * pageLength) }
  var parityLength: Int { SkippableFrame.minimumLength + parityRows * rowLength }
  /// Where the frames of the group end, and the footer begins, if one is protected.
  package var end: UInt64 {
    parityOffset + UInt64(parityLength) + UInt64(pageCount * pageLength)
  }
  /// Where the group's frames lie.
  package var region: Range<UInt64> { offset..<end }
  var footer: Range<UInt64> { end..<end + UInt64(footerLength) }

  /// Where a page begins.
  func place(ofPage number: Int) -> UInt64 {
    number < pageCount
      ? offset + UInt64(number * pageLength)
      : end - UInt64((2 * pageCount - number) * pageLength)
  }

  /// Where the blocks of some columns lie.
  func places(of columns: Range<Int>) -> [Range<Int>] {
    (0..<rows).flatMap { row in
      columns.compactMap { column in
        place(row: row, column: column).map { Int($0.range.lowerBound)..<Int($0.range.upperBound) }
      }
    }
  }

  /// Where a block lies in the file, and how many zeros come before it; nil for one that is all
  /// zeros and nowhere.
  func place(row: Int, column: Int) -> (range: Range<UInt64>, zeros: Int)? {
    let size = UInt64(blockSize)
    guard row < dataRows else {
      let start =
        parityOffset + UInt64(SkippableFrame.headerLength)
        + UInt64((row - dataRows) * rowLength) + UInt64(column) * size
      return (start..<start + size, 0)
    }
    let block = row * columns + column
    guard block < blockCount else { return nil }
    guard block < rangeBlocks else {
      let start = end + UInt64(block - rangeBlocks) * size
      return (start..<min(start + size, footer.upperBound), 0)
    }
    let start = base + UInt64(block) * size
    let first = max(start, range.lowerBound)
    return (first..<min(start + size, range.upperBound), Int(first - start))
  }

  /// The number of a block's checksum in the table.
  func sumNumber(row: Int, column: Int) -> Int {
    row < dataRows
      ? row * columns + column : blockCount + (row - dataRows) * columns + column
  }
}

extension ParityGroup {
  /// A group of the best shape for a range.
  ///
  /// - Parameters:
  ///   - range: What is protected; it is not empty, and no longer than ``longestRange(_:)``.
  ///   - footerLength: How long the footer is that is protected with it; 0 for none.
  ///   - percent: How much parity there is for it.
  ///   - offset: Where its frames begin.
  init(protecting range: Range<UInt64>, footerLength: Int, percent: Int, at offset: UInt64) {
    (self.range, self.footerLength, self.percent) = (range, footerLength, percent)
    (self.offset, mask) = (offset, 0)
    // What is lost is seldom aligned: the smaller the blocks, the less is lost with it. Each costs 16
    // bytes of table, so long ranges have larger ones.
    blockBits =
      switch range.count {
      case ...(16 << 10): 9
      case ...Self.longestOfSmallBlocks: 10
      default: 12
      }
    let size = 1 << blockBits
    let first = Int(range.lowerBound) % size
    let count = (first + range.count).divided(by: size) + footerLength.divided(by: size)
    func parityRows(_ rows: Int, columns: Int) -> Int {
      // Four fifths of the percentage may be damaged in one piece: it may begin and end within
      // blocks, and reach from the data into the parity.
      let run = (count * percent * 4).divided(by: 500) + 2
      let usual = max(
        (rows * percent).divided(by: 100), run.divided(by: columns) + (columns > 1 ? 1 : 0),
        Self.sector / size + 1)
      // Pieces in several places may meet in some columns more often than in others.
      return usual + (columns > 1 && size < Self.sector ? 2 : 0)
    }
    var (columns, rows) = (1, count)
    while rows + parityRows(rows, columns: columns) > ErasureCode.maximumRows {
      columns += 1 + count / 4096
      rows = count.divided(by: columns)
    }
    (dataRows, self.parityRows) = (rows, parityRows(rows, columns: columns))
  }

  /// The longest range that one group protects.
  static func longestRange(_ percent: Int) -> UInt64 {
    min(maximumRange, UInt64(32 << 20) * 100 / UInt64(percent))
  }

  /// The same group with another mask.
  func masked(_ mask: UInt64) -> ParityGroup {
    ParityGroup(
      blockBits: blockBits, dataRows: dataRows, parityRows: parityRows, percent: percent,
      range: range, footerLength: footerLength, offset: offset, mask: mask)
  }
}

extension ParityGroup {
  /// Reads the page that is a skippable frame which holds.
  ///
  /// - Throws: ``ArchiveError`` if it says what cannot be.
  /// - Returns: The group, and the number of the page.
  static func page(_ frame: SkippableFrame, in file: Span<UInt8>) throws(ArchiveError) -> (
    group: ParityGroup, number: Int
  ) {
    func malformed(_ what: String) -> ArchiveError {
      ArchiveError(.malformedParity(what), at: frame.offset)
    }
    guard frame.length >= pageHeader + 16 else { throw malformed("its length is impossible") }
    let start = frame.offset
    let (lower, upper) = (file.u64(start + 40), file.u64(start + 48))
    let offset = file.u64(start + 56)
    let (rows, parity) = (Int(file[start + 29]), Int(file[start + 30]))
    guard (9...12).contains(file[start + 28]), rows > 0, parity > 0,
      rows + parity <= ErasureCode.maximumRows, (1...100).contains(file[start + 31]),
      lower < upper, upper - lower <= maximumRange, upper <= offset, offset < 1 << 62,
      file.u32(start + 36) <= UInt32(Footer.maximumLength)
    else { throw malformed("its numbers are impossible") }
    let group = ParityGroup(
      blockBits: Int(file[start + 28]), dataRows: rows, parityRows: parity,
      percent: Int(file[start + 31]), range: lower..<upper,
      footerLength: Int(file.u32(start + 36)), offset: offset, mask: file.u64(start + 64))
    let number = Int(file.u32(start + 32))
    guard rows <= group.blockCount, group.pageLength <= longestPage,
      group.parityRows * group.rowLength <= maximumParity,
      frame.length == group.pageLength, number < 2 * group.pageCount,
      file.u64(frame.end - 16) == group.place(ofPage: number)
    else { throw malformed("its numbers contradict each other") }
    return (group, number)
  }

  /// The page that ends at a place, and its group; nil if there is none.
  static func page(endingAt place: Int, in file: Span<UInt8>) -> ParityGroup? {
    guard place >= pageHeader + 16, place <= file.count,
      let start = Int(exactly: file.u64(place - 16)), start < place
    else { return nil }
    // An error here says only that no page ends at this place.
    guard let frame = try? SkippableFrame(file, at: start), frame.end == place,
      frame.kind == SkippableFrame.parityPage, frame.holds(in: file)
    else { return nil }
    return try? page(frame, in: file).group
  }

  /// The bytes of a page.
  func page(_ number: Int, _ payload: ArraySlice<UInt8>) -> [UInt8] {
    var bytes =
      SkippableFrame.header(
        SkippableFrame.parityPage, payloadLength: pageLength - SkippableFrame.minimumLength) ?? []
    bytes.reserveCapacity(pageLength)
    bytes += [UInt8(blockBits), UInt8(dataRows), UInt8(parityRows), UInt8(percent)]
    bytes.append(littleEndian: UInt32(number))
    bytes.append(littleEndian: UInt32(footerLength))
    bytes.append(littleEndian: range.lowerBound)
    bytes.append(littleEndian: range.upperBound)
    bytes.append(littleEndian: offset)
    bytes.append(littleEndian: mask)
    bytes += payload
    bytes.append(littleEndian: place(ofPage: number))
    bytes.append(littleEndian: XXH64.hash(bytes.span))
    return bytes
  }
}

extension Int {
  /// The quotient, rounded up.
  func divided(by divisor: Int) -> Int { (self + divisor - 1) / divisor }
}
