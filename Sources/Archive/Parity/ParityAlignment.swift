internal import IPLD

/// Where the bytes of a protected file lie now, of which some were inserted or lost.
///
/// Every block is looked for at its own place, then as far from it as pages and blocks before it
/// were found, then everywhere nearby by its checksum.
package struct ParityAlignment {
  /// Where bytes belong, and where they are.
  private typealias Piece = (target: Int, source: Int, count: Int)

  private var pieces: [Piece] = []
  /// What is missing in the file, and how much of it parity can restore.
  package private(set) var report = ParityHealing.Report()
  private let file: MappedFile
  /// By how much the block lies after its place that was found last.
  private var shift = 0
  /// How many bytes may still be hashed to see whether a likely block is one.
  private var budget: Int

  /// How far blocks are looked for beyond where others of the group were found.
  private static let reach = 16 << 20
  /// How many bytes are searched before the pages of the file are released.
  private static let searchedAtOnce = 16 << 20

  /// Determines where the bytes of a file belong.
  ///
  /// - Returns: nil if all that is found is where it belongs.
  /// - Throws: ``ArchiveError`` if the library for parity is not installed.
  package init?(_ file: MappedFile) throws {
    self.file = file
    budget = 1 << 27 + 8 * file.count
    let groups = FoundParity.all(in: file)
    guard !groups.isEmpty else { return nil }
    var end = 0
    for found in groups {
      let start = Int(found.group.range.lowerBound)
      let before = pieces.count
      let shiftBefore = shift
      try locate(found)
      // Bytes that no group protects are shifted like the blocks around them.
      let first = pieces.dropFirst(before).min { $0.target < $1.target }
        .map { $0.source - $0.target }
      if start > end { add(end, end + (before > 0 ? shiftBefore : first ?? 0), start - end) }
      end = max(end, Int(found.group.footer.upperBound))
    }
    add(end, end + shift, max(0, file.count - end - shift))
    guard pieces.contains(where: { $0.target != $0.source }) else { return nil }
    pieces.sort { $0.target < $1.target }
    // Where two things belong in one place, this is not one archive.
    var last = pieces[0]
    for piece in pieces.dropFirst() {
      let isApart = last.target + last.count <= piece.target
      guard isApart || last.source - last.target == piece.source - piece.target else { return nil }
      if last.target + last.count < piece.target + piece.count { last = piece }
    }
  }

  /// The bytes of the file that belong nowhere, ascending.
  var strays: [Range<Int>] {
    var (strays, end) = ([Range<Int>](), 0)
    for range in pieces.map({ $0.source..<$0.source + $0.count }).merged() {
      if range.lowerBound > end { strays.append(end..<range.lowerBound) }
      end = range.upperBound
    }
    return end < file.count ? strays + [end..<file.count] : strays
  }

  /// Whether a file has every section that stands, intact, where bytes belong nowhere in this one:
  /// what belongs nowhere may be another archive.
  ///
  /// - Throws: ``ArchiveError`` if one of the files cannot be surveyed.
  package func losesNothing(to reader: ArchiveReader) throws -> Bool {
    let strays = strays
    guard !strays.isEmpty else { return true }
    let survey = try Survey(file, limits: reader.limits)
    return try survey.frames.allSatisfy { frame in
      guard frame.holdsSections, strays.has(Int(frame.offset)) else { return true }
      return try survey.keys(of: frame).allSatisfy { try !reader.candidates($0).isEmpty }
    }
  }

  /// Notes where bytes belong and are; of what is not in the file, as much as is.
  private mutating func add(_ target: Int, _ source: Int, _ count: Int) {
    let start = max(0, source)
    let end = min(file.count, source + count)
    guard start < end else { return }
    if let last = pieces.last, last.target + last.count == target,
      last.source + last.count == start,
      start == source
    {
      pieces[pieces.count - 1].count += end - start
    } else {
      pieces.append((target + start - source, start, end - start))
    }
  }

  /// How many bytes of the file are not in their places.
  package var bytesMoved: UInt64 {
    pieces.reduce(0) { $0 + ($1.target == $1.source ? 0 : UInt64($1.count)) }
  }

  /// Writes the file with every byte in its place, and zeros where none was found.
  ///
  /// - Parameter storage: An empty file.
  /// - Throws: what the storage throws.
  package func write(to storage: any ArchiveStorage) throws {
    var end = 0
    for piece in pieces {
      // Where two groups have the same bytes, the first will do.
      let skipped = max(0, end - piece.target)
      guard skipped < piece.count else { continue }
      let start = piece.target + skipped
      while end < start {
        let zeros = [UInt8](repeating: 0, count: min(1 << 20, start - end))
        try storage.write(zeros.span, at: UInt64(end))
        end += zeros.count
      }
      var place = piece.source + skipped
      while place < piece.source + piece.count {
        let next = min(place + 1 << 20, piece.source + piece.count)
        try file.withBytes { try storage.write($0.extracting(place..<next), at: UInt64(end)) }
        end += next - place
        place = next
        file.releasePagesIfLarge()
      }
    }
  }

  // MARK: Blocks

  /// A block of a group: where it belongs, its checksum, and its column.
  private typealias Block = (
    place: (range: Range<UInt64>, zeros: Int), sum: UInt64, column: Int
  )

  /// Blocks that are looked for, by the upper halves of their checksums.
  private struct WantedBlocks {
    private var blocks: [UInt32: [Block]] = [:]
    /// Whether one may be there, by 16 bits: a dictionary is too slow to be asked at every byte.
    private var mayHave = [Bool](repeating: false, count: 1 << 16)

    mutating func insert(_ block: Block) {
      let half = Self.upperHalf(block)
      blocks[half, default: []].append(block)
      mayHave[Int(half & 0xffff)] = true
    }

    mutating func remove(like block: Block) { blocks[Self.upperHalf(block)] = nil }

    @inline(__always)
    func blocks(_ half: UInt32) -> [Block]? {
      mayHave[Int(half & 0xffff)] ? blocks[half] : nil
    }

    private static func upperHalf(_ block: Block) -> UInt32 {
      UInt32(truncatingIfNeeded: block.sum >> 32)
    }
  }

  private mutating func locate(_ found: FoundParity) throws {
    let (group, before) = (found.group, pieces.count)
    for (number, place) in found.pages {
      add(Int(group.place(ofPage: number)), place, group.pageLength)
    }
    report.groupCount += 1
    guard let table = try file.withBytes({ (bytes) throws in try found.table(in: bytes) }) else {
      return report.damagedCount += 1
    }
    var shifts = [shift] + found.shifts.sorted() + [0]
    var missing: [Block] = []
    for row in 0..<group.rows {
      for column in 0..<group.columns {
        guard let place = group.place(row: row, column: column) else { continue }
        let block = (place, table[group.sumNumber(row: row, column: column)], column)
        if !find(block, group.blockSize, at: &shifts) { missing.append(block) }
      }
      file.releasePagesIfLarge()
    }
    let known = shifts.count
    if !missing.isEmpty { search(missing, group, &shifts) }
    if shifts.count > known {
      missing.removeAll { find($0, group.blockSize, at: &shifts) }
    }
    report.note(missing.map(\.column), each: group.parityRows)
    // What follows lies as the end of the group does, whichever block was found last.
    if let last = pieces.dropFirst(before).max(by: { $0.target < $1.target }) {
      shift = last.source - last.target
    }
  }

  /// Looks for a block at these distances from its place, and moves the right one to the front.
  private mutating func find(_ block: Block, _ size: Int, at shifts: inout [Int]) -> Bool {
    for (index, shift) in shifts.enumerated() {
      let start = Int(block.place.range.lowerBound) + shift
      let count = block.place.range.count
      guard start >= 0, start + count <= file.count else { continue }
      let sum = file.withBytes { bytes in
        guard count < size else { return BlockSum.of(bytes.extracting(start..<start + size)) }
        var padded = [UInt8](repeating: 0, count: size)
        padded.replaceSubrange(
          block.place.zeros..<block.place.zeros + count, with: bytes.array(start..<start + count))
        return BlockSum.of(padded.span)
      }
      guard sum == block.sum else { continue }
      if index > 0 { shifts.swapAt(0, index) }
      self.shift = shift
      add(Int(block.place.range.lowerBound), start, count)
      return true
    }
    return false
  }

  /// Looks for blocks all around where the group was found, and notes how far from their places
  /// some of them are.
  private mutating func search(_ missing: [Block], _ group: ParityGroup, _ shifts: inout [Int]) {
    let size = group.blockSize
    var wanted = WantedBlocks()
    for block in missing where block.place.range.count == size { wanted.insert(block) }
    let start = max(0, Int(group.range.lowerBound) + (shifts.min() ?? 0) - Self.reach)
    let end = min(file.count, Int(group.footer.upperBound) + (shifts.max() ?? 0) + Self.reach)
    let taken = pieces.map { $0.source..<$0.source + $0.count }.merged() + [end..<end]
    var place = start
    for range in taken where range.upperBound > start {
      search(place..<max(place, min(end, range.lowerBound)), size, &wanted, &shifts)
      place = max(place, range.upperBound)
      if place >= end { break }
    }
  }

  /// Looks for whole blocks between two places.
  private mutating func search(
    _ range: Range<Int>, _ size: Int, _ wanted: inout WantedBlocks, _ shifts: inout [Int]
  ) {
    guard range.count >= size else { return }
    var place = range.lowerBound
    while place + size <= range.upperBound, budget > 0 {
      let end = min(range.upperBound - size, place + Self.searchedAtOnce)
      let hit = file.withBytes { bytes -> (place: Int, block: Block)? in
        var hash = RollingHash(bytes, from: place)
        while true {
          if let blocks = wanted.blocks(hash.upperHalf) {
            budget -= size
            let sum = BlockSum.of(bytes.extracting(place..<place + size))
            if let block = blocks.first(where: { $0.sum == sum }) { return (place, block) }
          }
          guard place < end, budget > 0 else { return nil }
          hash.roll(out: bytes[place], in: bytes[place + RollingHash.length])
          place += 1
        }
      }
      file.releasePagesIfLarge()
      guard let (start, block) = hit else {
        place += 1
        continue
      }
      wanted.remove(like: block)
      let shift = start - Int(block.place.range.lowerBound)
      if !shifts.contains(shift) { shifts.append(shift) }
      place = start + size
    }
  }
}
