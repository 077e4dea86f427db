internal import IPLD

/// Makes the frames of a parity group.
///
/// In memory is the parity of one group, ``ParityGroup/maximumParity`` bytes at most.
struct ParityEncoder {
  private var group: ParityGroup
  private var code: ErasureCode
  private var parity: [UInt8]
  private var sums: [UInt64]
  /// The blocks that do not lie whole in the file: one of zeros, then those named in ``edges``.
  private var scratch: [UInt8]
  /// Which of them are in the scratch memory, and where.
  private var edges: [Int: Int] = [:]

  /// Columns that are encoded before the pages of the file are released.
  private static let columnsAtOnce = 4

  /// Makes the parity of a group.
  ///
  /// - Parameters:
  ///   - group: The group, with no mask.
  ///   - file: The file up to the first frame of the group at least.
  ///   - footer: The footer that is protected; empty for none.
  /// - Throws: ``ArchiveError`` if the library for it is not installed; what fetching throws.
  init(_ group: ParityGroup, of file: MappedFile, footer: [UInt8]) throws {
    self.group = group
    code = try ErasureCode(dataRows: group.dataRows, parityRows: group.parityRows)
    parity = [UInt8](repeating: 0, count: group.parityRows * group.rowLength)
    sums = [UInt64](repeating: 0, count: group.sumCount)
    scratch = [UInt8](repeating: 0, count: group.blockSize)
    let range = [Int(group.range.lowerBound)..<Int(group.range.upperBound)]
    file.withBytes(reading: range) { copyEdges(of: $0, footer) }
    for start in stride(from: 0, to: group.columns, by: Self.columnsAtOnce) {
      file.withBytes(reading: range) { bytes in
        encode(start..<min(group.columns, start + Self.columnsAtOnce), of: bytes)
      }
      file.releasePagesIfLarge()
    }
    try file.checkFetched()
  }

  private mutating func copyEdges(of file: Span<UInt8>, _ footer: [UInt8]) {
    let (size, columns) = (group.blockSize, group.columns)
    for block in Set([0]).union(max(0, group.blockCount - 3)..<group.blockCount).sorted() {
      guard let (range, zeros) = group.place(row: block / columns, column: block % columns)
      else { continue }
      let isFooter = range.lowerBound >= group.end
      let start = Int(range.lowerBound - (isFooter ? group.end : 0))
      var bytes = [UInt8](repeating: 0, count: zeros)
      bytes +=
        isFooter
        ? footer[start..<start + range.count][...] : file.array(start..<start + range.count)[...]
      bytes += [UInt8](repeating: 0, count: size - bytes.count)
      edges[block] = scratch.count
      scratch += bytes
    }
  }

  private mutating func encode(_ range: Range<Int>, of file: Span<UInt8>) {
    let (group, size, edges) = (group, group.blockSize, edges)
    var data = unsafe [UnsafeMutablePointer<UInt8>?](repeating: nil, count: group.dataRows)
    var made = unsafe [UnsafeMutablePointer<UInt8>?](repeating: nil, count: group.parityRows)
    unsafe file.withUnsafeBufferPointer { file in
      unsafe scratch.withUnsafeMutableBufferPointer { scratch in
        unsafe parity.withUnsafeMutableBufferPointer { parity in
          guard let file = file.baseAddress, let scratch = scratch.baseAddress,
            let parity = parity.baseAddress
          else { return }
          for column in range {
            for row in 0..<group.dataRows {
              let block = row * group.columns + column
              if let edge = edges[block] {
                unsafe data[row] = scratch + edge
              } else if block < group.blockCount {
                // The library asks for pointers through which it does not write.
                unsafe data[row] = UnsafeMutablePointer(
                  mutating: file + group.start(ofBlock: block))
              } else {
                unsafe data[row] = scratch
              }
            }
            for row in 0..<group.parityRows {
              unsafe made[row] = parity + row * group.rowLength + column * size
            }
            unsafe code.encode(&data, into: &made, length: size)
            for row in 0..<group.dataRows where row * group.columns + column < group.blockCount {
              guard let pointer = unsafe data[row] else { continue }
              sums[row * group.columns + column] = BlockSum.of(
                unsafe Span(_unsafeStart: pointer, count: size))
            }
          }
        }
      }
    }
  }

  /// Hands over the bytes of the group's frames, piece by piece.
  ///
  /// - Throws: what `body` throws.
  mutating func write(_ body: (Span<UInt8>) throws -> Void) throws {
    var pieces = try pieces()
    while !haveOneMagicEach(pieces) {
      // A hostile blob can determine the parity, but not a random mask.
      mask(with: .random(in: 0 ... .max))
      pieces = try self.pieces()
    }
    for page in pieces.before { try body(page.span) }
    try body(pieces.header.span)
    try body(parity.span)
    try body(pieces.checksum.span)
    for page in pieces.behind { try body(page.span) }
  }

  /// The bytes of the group beside the parity itself: the pages before it, the header and the
  /// checksum of its frame, the pages after it.
  private typealias Pieces = (
    before: [[UInt8]], header: [UInt8], checksum: [UInt8], behind: [[UInt8]]
  )

  private func pieces() throws -> Pieces {
    var table = sums
    for row in 0..<group.parityRows {
      for column in 0..<group.columns {
        let place = row * group.rowLength + column * group.blockSize
        table[group.sumNumber(row: group.dataRows + row, column: column)] = BlockSum.of(
          parity.span.extracting(place..<place + group.blockSize))
      }
    }
    let pages = try group.pages(of: table)
    let header = SkippableFrame.header(SkippableFrame.parity, payloadLength: parity.count) ?? []
    var hash = XXH64.Stream()
    hash.update(header.span)
    hash.update(parity.span)
    var checksum: [UInt8] = []
    checksum.append(littleEndian: hash.finish())
    return (
      Array(pages[..<group.pageCount]), header, checksum, Array(pages[group.pageCount...])
    )
  }

  /// Whether the magic occurs once in each frame, at its beginning.
  private func haveOneMagicEach(_ pieces: Pieces) -> Bool {
    let end = Array(parity.suffix(ArchiveMagic.length) + pieces.checksum)
    return (pieces.before + pieces.behind).allSatisfy {
      ArchiveMagic.next(in: $0.span, from: 9) == nil
    } && ArchiveMagic.next(in: parity.span) == nil && ArchiveMagic.next(in: end.span) == nil
  }

  /// Stores the parity under another mask.
  private mutating func mask(with mask: UInt64) {
    parity = parity.masked(group.mask ^ mask)
    group = group.masked(mask)
  }
}

extension ParityGroup {
  /// Where a block that is not the first begins, if it is of the range.
  func start(ofBlock block: Int) -> Int {
    (Int(range.lowerBound) >> blockBits + block) << blockBits
  }

  /// All pages of a table, those first that stand before the parity.
  func pages(of table: [UInt64]) throws(ArchiveError) -> [[UInt8]] {
    var payloads: [UInt8] = []
    payloads.reserveCapacity(2 * pageCount * pagePayload)
    for sum in table { payloads.append(littleEndian: sum ^ mask) }
    payloads += [UInt8](repeating: 0, count: 2 * pageCount * pagePayload - payloads.count)
    var code = try ErasureCode(dataRows: pageCount, parityRows: pageCount)
    code.encode(&payloads, length: pagePayload)
    return (0..<2 * pageCount).map {
      page($0, payloads[$0 * pagePayload..<($0 + 1) * pagePayload])
    }
  }
}

extension [UInt8] {
  /// The bytes, each group of eight xor a mask.
  func masked(_ mask: UInt64) -> [UInt8] {
    guard mask != 0 else { return self }
    return indices.map { self[$0] ^ UInt8(truncatingIfNeeded: mask >> UInt64($0 % 8 * 8)) }
  }
}
