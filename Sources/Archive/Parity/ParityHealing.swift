internal import IPLD

/// Heals damaged bytes of a file from parity, in place (FORMAT 7.2).
///
/// 1. A byte is written only where its block does not have its checksum, and what is written has
///    it.
/// 2. Bytes that were made void, after they were healed by other means, stay as they are.
/// 3. A footer is written last, when everything before it is on the medium.
package struct ParityHealing {
  /// What was found, and what became of it.
  package struct Report: Equatable, Sendable {
    /// How many groups protect the file.
    package internal(set) var groupCount = 0
    /// How many blocks do not have their checksums, those of the parity among them.
    package internal(set) var damagedCount = 0
    /// How many of them parity can make again.
    package internal(set) var healableCount = 0
    /// How many bytes were written.
    package internal(set) var bytesHealed: UInt64 = 0

    /// Whether parity can heal all that it knows to be damaged.
    package var isHealable: Bool { damagedCount == healableCount }

    /// Notes lost blocks of a group by their columns, of each of which some can be made again.
    mutating func note(_ columns: [Int], each most: Int) {
      damagedCount += columns.count
      for lost in Dictionary(grouping: columns, by: \.self).values where lost.count <= most {
        healableCount += lost.count
      }
    }
  }

  private let storage: (any ArchiveStorage)?
  private let voids: [Range<Int>]
  private let intact: [Range<Int>]
  /// Whether this is a trial run, which writes nothing and shows what would be lost.
  private let isTrying: Bool
  /// How many bytes of intact frames would be others, by the number of the frame.
  private var differing: [Int: Int] = [:]
  private var report = Report()
  /// The footers that are written last.
  private var footers: [(place: UInt64, bytes: [UInt8])] = []

  /// Determines what parity can heal of a file, without changing it.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - found: Its groups.
  /// - Throws: ``ArchiveError`` if the library for it is not installed.
  static func assess(_ file: MappedFile, _ found: [FoundParity]) throws -> Report {
    var healing = ParityHealing(storage: nil)
    for found in found { try healing.pass(found, in: file) }
    return healing.report
  }

  /// Heals what parity can heal of a file, bit for bit, and nothing else.
  ///
  /// - Parameters:
  ///   - storage: The file.
  ///   - limits: How much it may hold.
  /// - Throws: ``ArchiveError`` if another archive begins in it, or the library for parity is not
  ///   installed; what the storage throws.
  /// - Returns: How many bytes were written.
  package static func heal(
    _ storage: any ArchiveStorage, limits: ArchiveLimits = ArchiveLimits()
  ) throws -> UInt64 {
    try storage.lock()
    let file = try storage.map()
    let survey = try Survey(file, limits: limits)
    try file.withBytes { bytes throws in try survey.refuseFurtherArchives(in: bytes) }
    return try heal(storage, survey)
  }

  /// Heals what parity can heal of a file that was surveyed.
  static func heal(_ storage: any ArchiveStorage, _ survey: Survey) throws -> UInt64 {
    let found = try FoundParity.all(in: storage.map())
    guard !found.isEmpty else { return 0 }
    return try heal(storage, found, except: survey.voids, sparing: survey.uniqueFrames).bytesHealed
  }

  /// Heals a file.
  ///
  /// - Parameters:
  ///   - storage: The file; it is locked.
  ///   - found: Its groups; those of which no page is in its place are those of another file, or
  ///     have to be put into their places first.
  ///   - voids: Bytes that no longer count, ascending.
  ///   - intact: Frames that hold, and of which there is no copy, ascending. Where bytes were
  ///     lost before them, they lie where others belong: then the group is left as it is.
  /// - Throws: ``ArchiveError`` if the library for it is not installed; what the storage throws.
  static func heal(
    _ storage: any ArchiveStorage, _ found: [FoundParity], except voids: [Range<Int>] = [],
    sparing intact: [Range<Int>] = []
  ) throws -> Report {
    var healing = ParityHealing(storage: storage, voids: voids)
    // One group may heal what another lacks.
    var before = Report()
    let found = try found.filter { found in
      guard found.shifts.contains(0) else { return false }
      var trial = ParityHealing(storage: storage, intact: intact, isTrying: true)
      try trial.pass(found, in: storage.map())
      return !trial.wouldLose(found.group)
    }
    repeat {
      before = healing.report
      (healing.report.damagedCount, healing.report.healableCount) = (0, 0)
      healing.report.groupCount = 0
      for found in found {
        let file = try storage.map()
        try healing.pass(found, in: file)
      }
      if healing.report.bytesHealed > before.bytesHealed { try storage.synchronize() }
      for footer in healing.footers { try healing.write(footer.bytes, at: footer.place) }
      healing.footers = []
    } while !healing.report.isHealable && healing.report.bytesHealed > before.bytesHealed
    if healing.report.bytesHealed > 0 { try storage.synchronize() }
    return healing.report
  }

  private init(
    storage: (any ArchiveStorage)?, voids: [Range<Int>] = [], intact: [Range<Int>] = [],
    isTrying: Bool = false
  ) {
    (self.storage, self.voids, self.intact) = (storage, voids, intact)
    self.isTrying = isTrying
  }

  /// Columns that are examined before the pages of the file are released.
  private static let columnsAtOnce = 16

  /// How many bytes of an intact frame may be others when it is healed, for it to be the same
  /// frame: zstd has bits that say nothing, and a frame in which one of them flipped is intact.
  private static let maximumNoise = 8

  /// Whether an intact frame would be gone: one of which only a part lies in the range of the group
  /// lies where others belong.
  private func wouldLose(_ group: ParityGroup) -> Bool {
    differing.contains { number, count in
      let (frame, range) = (intact[number], group.range)
      let isOwn =
        UInt64(frame.lowerBound) >= range.lowerBound && UInt64(frame.upperBound) <= range.upperBound
      return count > (isOwn ? Self.maximumNoise : 0)
    }
  }

  private mutating func pass(_ found: FoundParity, in file: MappedFile) throws {
    report.groupCount += 1
    let group = found.group
    guard
      let table = try file.withBytes(
        reading: found.pages.values.map { $0..<$0 + group.pageLength },
        { (bytes) throws in try found.table(in: bytes) })
    else { return report.damagedCount += 1 }
    var code = try ErasureCode(dataRows: group.dataRows, parityRows: group.parityRows)
    var isWhole = true
    // What was cut off is made again only if all of it can be.
    if storage != nil, group.footer.upperBound > UInt64(file.count) {
      var assessing = ParityHealing(storage: nil)
      try assessing.pass(found, in: file)
      guard assessing.report.isHealable else {
        report.damagedCount += assessing.report.damagedCount
        report.healableCount += assessing.report.healableCount
        return
      }
    }
    for start in stride(from: 0, to: group.columns, by: Self.columnsAtOnce) {
      let columns = start..<min(group.columns, start + Self.columnsAtOnce)
      let blocks = file.isFetched ? group.places(of: columns) : []
      try file.withBytes(reading: blocks.map { $0.clamped(to: 0..<file.count) }) {
        (bytes) throws in
        for column in columns {
          let healed = try heal(column, of: group, table, &code, in: bytes)
          isWhole = isWhole && healed
        }
      }
      file.releasePagesIfLarge()
    }
    if isWhole, storage != nil { try writeFrames(of: group, table) }
  }

  /// Heals the blocks of a column; returns whether all of them are in order then.
  private mutating func heal(
    _ column: Int, of group: ParityGroup, _ table: [UInt64], _ code: inout ErasureCode,
    in file: Span<UInt8>
  ) throws -> Bool {
    let size = group.blockSize
    let lost = (0..<group.rows).filter { row in
      guard let place = group.place(row: row, column: column) else { return false }
      return Self.sum(at: place, size, in: file) != table[group.sumNumber(row: row, column: column)]
    }
    guard !lost.isEmpty else { return true }
    report.damagedCount += lost.count
    guard lost.count <= group.parityRows else { return false }
    guard storage != nil else {
      report.healableCount += lost.count
      return true
    }
    var rows: [UInt8] = []
    rows.reserveCapacity(group.rows * size)
    for row in 0..<group.rows {
      let place = group.place(row: row, column: column)
      let bytes = place.flatMap { Self.block(at: $0, size, in: file) }
      let block = bytes ?? [UInt8](repeating: 0, count: size)
      rows += row < group.dataRows ? block : block.masked(group.mask)
    }
    guard code.rebuild(&rows, lost: lost, length: size) else { return false }
    var made: [(place: Range<UInt64>, bytes: [UInt8])] = []
    for row in lost {
      var block = Array(rows[row * size..<(row + 1) * size])
      if row >= group.dataRows { block = block.masked(group.mask) }
      guard let place = group.place(row: row, column: column),
        BlockSum.of(block.span) == table[group.sumNumber(row: row, column: column)]
      else { return false }
      made.append((place.range, Array(block[place.zeros..<place.zeros + place.range.count])))
    }
    for (place, bytes) in made {
      if !isTrying, group.footer.contains(place.lowerBound) {
        footers.append((place.lowerBound, bytes))
      } else {
        try write(bytes, at: place.lowerBound)
      }
    }
    report.healableCount += lost.count
    return true
  }

  /// The checksum of what lies at a block's place; nil if the file ends before it does.
  private static func sum(
    at place: (range: Range<UInt64>, zeros: Int), _ size: Int, in file: Span<UInt8>
  ) -> UInt64? {
    guard place.range.upperBound <= UInt64(file.count) else { return nil }
    guard place.range.count < size else {
      return BlockSum.of(
        file.extracting(Int(place.range.lowerBound)..<Int(place.range.upperBound)))
    }
    return block(at: place, size, in: file).map { BlockSum.of($0.span) }
  }

  /// What lies at a block's place, with the zeros that belong to it.
  private static func block(
    at place: (range: Range<UInt64>, zeros: Int), _ size: Int, in file: Span<UInt8>
  ) -> [UInt8]? {
    guard place.range.upperBound <= UInt64(file.count) else { return nil }
    var block = [UInt8](repeating: 0, count: place.zeros)
    block += file.array(Int(place.range.lowerBound)..<Int(place.range.upperBound))
    block += [UInt8](repeating: 0, count: size - block.count)
    return block
  }

  /// Rebuilds the group's own frames, where they have changed.
  private mutating func writeFrames(of group: ParityGroup, _ table: [UInt64]) throws {
    guard let storage else { return }
    for (number, page) in try group.pages(of: table).enumerated() {
      try write(page, at: group.place(ofPage: number))
    }
    let header =
      SkippableFrame.header(
        SkippableFrame.parity, payloadLength: group.parityRows * group.rowLength) ?? []
    try write(header, at: group.parityOffset)
    // The checksum is that of what would have been written.
    guard !isTrying else { return }
    let rest = Int(group.parityOffset) + group.parityLength - SkippableFrame.checksumLength
    let frame = Int(group.parityOffset)..<rest
    let map = try storage.map()
    let checksum = map.withBytes(reading: [frame]) { XXH64.hash($0.extracting(frame)) }
    try map.checkFetched()
    var trailer: [UInt8] = []
    trailer.append(littleEndian: checksum)
    try write(trailer, at: UInt64(rest))
  }

  /// Writes bytes where they differ from what is there, and not into what no longer counts.
  private mutating func write(_ bytes: [UInt8], at place: UInt64) throws {
    guard let storage else { return }
    let (start, size) = (Int(place), Int(try storage.size))
    let end = start + bytes.count
    if size < end {
      if size > start { try write(Array(bytes[..<(size - start)]), at: place) }
      guard !isTrying else { return }
      // Behind the end there is nothing to be kept.
      try storage.lengthen(to: UInt64(start))
      let rest = Array(bytes[max(0, size - start)...])
      try storage.write(rest.span, at: UInt64(max(start, size)))
      report.bytesHealed += UInt64(rest.count)
      return
    }
    let old = try storage.read(bytes.count, at: place)
    guard old != bytes else { return }
    guard !isTrying else {
      var number = intact.partitioningIndex { $0.upperBound > start }
      while number < intact.count, intact[number].lowerBound < end {
        let part = intact[number].clamped(to: start..<end)
        let own = part.lowerBound - start..<part.upperBound - start
        differing[number, default: 0] += zip(bytes[own], old[own]).count { $0.0 != $0.1 }
        number += 1
      }
      return
    }
    var next = start
    for range in voids[voids.partitioningIndex { $0.upperBound > start }...] + [end..<end] {
      let free = next..<max(next, min(range.lowerBound, end))
      next = max(next, range.upperBound)
      if !free.isEmpty {
        let piece = Array(bytes[free.lowerBound - start..<free.upperBound - start])
        if piece[...] != old[free.lowerBound - start..<free.upperBound - start] {
          try storage.write(piece.span, at: UInt64(free.lowerBound))
          report.bytesHealed += UInt64(free.count)
        }
      }
      if range.lowerBound >= end { break }
    }
  }
}

extension ArchiveStorage {
  /// Makes the file as long as this with zeros, if it is shorter.
  fileprivate func lengthen(to size: UInt64) throws {
    var end = try self.size
    while end < size {
      let zeros = [UInt8](repeating: 0, count: Int(min(1 << 20, size - end)))
      try write(zeros.span, at: end)
      end += UInt64(zeros.count)
    }
  }
}

extension Survey {
  /// The data frames that hold and have no copy in the file, in file order.
  fileprivate var uniqueFrames: [Range<Int>] {
    let intact = frames.filter(\.isIntact)
    let counts = Dictionary(grouping: intact, by: \.checksum).mapValues(\.count)
    return intact.filter { counts[$0.checksum] == 1 }.map { Int($0.offset)..<Int($0.end) }
  }
}
