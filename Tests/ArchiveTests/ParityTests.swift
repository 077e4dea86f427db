import Archive
import ArchiveTestSupport
import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Archive

@Suite struct `Parity` {
  /// An archive of some generations, all of them protected.
  private func sample(
    _ random: inout SeededGenerator, generations: Int, percent: Int = 5,
    lengths: ClosedRange<Int> = 80...20_000
  ) throws -> AppendedArchive {
    let archive = AppendedArchive()
    for _ in 0..<generations {
      var options = ArchiveOptions()
      options.parity = percent
      try archive.append(
        (0..<1 + Int(random.next() % 8)).map { _ in
          random.bytes(Int.random(in: lengths, using: &random))
        }, options)
    }
    return archive
  }

  /// Repairs damaged bytes of an archive; gives what is there then.
  private func healed(_ bytes: [UInt8]) throws -> [UInt8] {
    var bytes = bytes
    if let alignment = try ParityAlignment(MappedFile(copying: bytes)) {
      let aligned = MemoryStorage()
      try alignment.write(to: aligned)
      bytes = aligned.bytes
    }
    let storage = MemoryStorage(bytes)
    _ = try ArchiveRepair.run(storage)
    return storage.bytes
  }

  @Test func `is passed over by a reader, and verifies`() throws {
    var random = SeededGenerator(printing: 0x9a1)
    let archive = try sample(&random, generations: 12)
    try archive.check()
    #expect(try archive.reader().generation.features.isProtected)
  }

  @Test func `costs an append of one small section at most 6 kB`() throws {
    var random = SeededGenerator(printing: 0x9a2)
    let archive = try sample(&random, generations: 1, lengths: 60_000...60_000)
    let plain = AppendedArchive()
    try plain.append([random.bytes(60_000)])
    for number in 0..<5 {
      let before = (archive.storage.bytes.count, plain.storage.bytes.count)
      let body = random.text(300)
      try archive.append([body])
      try plain.append([body])
      let more = archive.storage.bytes.count - before.0 - (plain.storage.bytes.count - before.1)
      #expect((1..<6000).contains(more), "append \(number): \(more) bytes")
    }
  }

  @Test(arguments: [1, 3, 20])
  func `heals a flipped bit anywhere, also in footers, indexes and parity`(_ generations: Int)
    throws
  {
    var random = SeededGenerator(printing: 0x9a3)
    let archive = try sample(&random, generations: generations)
    let bytes = archive.storage.bytes
    for place in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 300)) {
      var damaged = bytes
      damaged[place] ^= 1 << UInt8(random.next() % 8)
      let found = try healed(damaged)
      if found != bytes { Issue.record("byte \(place) of \(bytes.count)") }
    }
  }

  @Test func `heals a lost sector of the smallest archive, wherever it is`() throws {
    var random = SeededGenerator(printing: 0x9a4)
    let archive = try sample(&random, generations: 3, lengths: 80...900)
    let bytes = archive.storage.bytes
    for start in stride(from: 0, to: bytes.count, by: 4096) {
      var damaged = bytes
      for place in start..<min(start + 4096, bytes.count) { damaged[place] = 0xaa }
      let found = try healed(damaged)
      if found != bytes { Issue.record("sector at \(start) of \(bytes.count)") }
    }
  }

  @Test func `heals damage in one piece up to 4 % of a group`() throws {
    var random = SeededGenerator(printing: 0x9a5)
    for length in [30_000, 300_000, 3_000_000] {
      let archive = try sample(&random, generations: 1, lengths: length...length)
      let bytes = archive.storage.bytes
      for _ in 0..<(length < 1_000_000 ? 40 : 12) {
        let count = bytes.count * 100 / 106 * 4 / 100
        let start = Int.random(in: 0...bytes.count - count, using: &random)
        var damaged = bytes
        damaged.replaceSubrange(start..<start + count, with: random.bytes(count))
        let found = try healed(damaged)
        if found != bytes { Issue.record("\(count) bytes at \(start) of \(bytes.count)") }
      }
    }
  }

  @Test(arguments: [(640_000, 6), (2 << 20, 8), (4 << 20, 8), (6 << 20, 8)])
  func `heals pieces of 4 KiB that are lost in several places and not aligned`(
    _ length: Int, _ count: Int
  ) throws {
    var random = SeededGenerator(printing: 0x9af)
    let archive = AppendedArchive()
    var options = ArchiveOptions()
    options.parity = 5
    try archive.append([random.bytes(length - 4096)], options)
    let bytes = archive.storage.bytes
    for round in 0..<20 {
      var damaged = bytes
      for _ in 0..<count {
        // Nowhere at the beginning of a sector.
        let start =
          Int.random(in: 0...(bytes.count - 8192) / 4096, using: &random) * 4096
          + Int.random(in: 1..<4096, using: &random)
        damaged.replaceSubrange(start..<start + 4096, with: random.bytes(4096))
      }
      let found = try healed(damaged)
      if found != bytes { Issue.record("round \(round), \(bytes.count) bytes") }
    }
  }

  @Test func `heals six of them wherever they are in an archive of 640 kB`() throws {
    var random = SeededGenerator(printing: 0x9b0)
    let archive = AppendedArchive()
    var options = ArchiveOptions()
    options.parity = 5
    try archive.append([random.bytes(600_000)], options)
    let bytes = archive.storage.bytes
    // All six begin at the same place of a column of three blocks.
    for offset in [1, 1025, 2049] {
      var damaged = bytes
      for number in 0..<6 {
        let start = (9 + 20 * number) * 3 * 1024 + offset
        damaged.replaceSubrange(start..<start + 4096, with: random.bytes(4096))
      }
      #expect(try healed(damaged) == bytes, "offset \(offset)")
    }
    let price = bytes.count - 600_000
    #expect(price < 600_000 * 85 / 1000, "\(price)")
  }

  @Test func `heals what was cut off at the beginning or the end, up to 3 % of a group`() throws {
    var random = SeededGenerator(printing: 0x9a6)
    for length in [30_000, 300_000, 3_000_000] {
      let archive = try sample(&random, generations: 1, lengths: length...length)
      let bytes = archive.storage.bytes
      let most = bytes.count * 100 / 106 * 3 / 100
      for count in [1, 9, most / 2, most] {
        #expect(
          try healed(Array(bytes.dropLast(count))) == bytes, "\(count) of \(bytes.count) at the end"
        )
        #expect(
          try healed(Array(bytes.dropFirst(count))) == bytes,
          "\(count) of \(bytes.count) at the beginning")
      }
    }
  }

  @Test(arguments: [1, 2])
  func `heals bytes that were inserted or lost`(_ generations: Int) throws {
    var random = SeededGenerator(printing: 0x9a7)
    let archive = try sample(&random, generations: generations, lengths: 100_000...200_000)
    let bytes = archive.storage.bytes
    for round in 0..<40 {
      var damaged = bytes
      for _ in 0...round % 3 {
        let place = Int.random(in: 0...damaged.count, using: &random)
        let count = Int.random(in: 1...3000, using: &random)
        if random.next() % 2 == 0 {
          damaged.insert(contentsOf: random.bytes(count), at: place)
        } else {
          damaged.removeSubrange(place..<min(place + count, damaged.count))
        }
      }
      let found = try healed(damaged)
      if found != bytes { Issue.record("round \(round): \(found.count) of \(bytes.count)") }
    }
  }

  @Test func `loses nothing that lies a byte too early behind a group that lost one`() throws {
    var random = SeededGenerator(printing: 0x9ae)
    let archive = try sample(&random, generations: 2)
    let bodies = (0..<4).map { _ in random.bytes(3000) }
    try archive.append(bodies)
    let bytes = archive.storage.bytes
    let group = try ArchiveReader(MappedFile(copying: bytes)).generation.previousFooterOffset ?? 0
    for place in stride(from: 500, to: Int(group), by: Int(group) / 40) {
      var damaged = bytes
      damaged.remove(at: place)
      let storage = MemoryStorage(damaged)
      // Without putting the bytes back into their places first.
      _ = try ArchiveRepair.run(storage)
      let reader = try ArchiveReader(storage.map())
      for body in bodies { #expect(try reader.body(of: .blob(body)) == body, "byte \(place)") }
    }
  }

  @Test func `heals a copy for a reader, and leaves the file as it is`() throws {
    var random = SeededGenerator(printing: 0x9b1)
    let folder = try TemporaryFolder()
    let path = FilePath(folder.file("a.car.zst"))
    for generations in [1, 3] {
      let archive = try sample(&random, generations: generations, lengths: 20_000...90_000)
      let bytes = archive.storage.bytes
      func check(_ damaged: [UInt8], is expected: [UInt8]? = nil, _ what: String) throws {
        try folder.write("a.car.zst", damaged)
        let (copy, count) = try HealedCopy.map(path) { MemoryStorage() }
        #expect(copy.withBytes { $0.array } == expected ?? bytes, "\(what), \(generations)")
        #expect((count == 0) == (damaged == expected ?? bytes), "\(what)")
        copy.releasePages()
        #expect(copy.withBytes { $0.array } == expected ?? bytes, "\(what)")
        #expect(try folder.read("a.car.zst") == damaged, "\(what)")
      }
      try check(bytes, "intact")
      for _ in 0..<20 {
        var damaged = bytes
        // Elsewhere it may lie in the frames around parity, which readers do not need.
        let place = Int.random(in: 0..<10_000, using: &random)
        damaged[place] ^= 1
        try check(damaged, "bit at \(place)")
      }
      let start = bytes.count / 3
      var damaged = bytes
      damaged.replaceSubrange(start..<start + 2000, with: random.bytes(2000))
      try check(damaged, "2000 bytes")
      for count in [1, 40, 500] {
        try check(Array(bytes.dropLast(count)), "\(count) cut off")
        try check(Array(bytes.dropFirst(count)), "\(count) cut off at the beginning")
      }
      damaged = bytes
      damaged.removeSubrange(start..<start + 9)
      try check(damaged, "9 lost")
      damaged = bytes
      damaged.insert(contentsOf: random.bytes(77), at: start)
      try check(damaged, "77 inserted")
    }
    // Without parity, and where it is no help, it is what it is.
    let plain = AppendedArchive()
    try plain.append([random.bytes(9000)])
    try folder.write("a.car.zst", plain.storage.bytes)
    #expect(try HealedCopy.map(path) { MemoryStorage() }.bytesHealed == 0)
    let archive = try sample(&random, generations: 1, lengths: 200_000...200_000)
    var lost = archive.storage.bytes
    for place in 1000..<150_000 { lost[place] = 0 }
    try folder.write("a.car.zst", lost)
    _ = try HealedCopy.map(path) { MemoryStorage() }
    #expect(try folder.read("a.car.zst") == lost)
  }

  @Test func `leaves an archive that it cannot heal readable as far as it was`() throws {
    var random = SeededGenerator(printing: 0x9a8)
    let archive = try sample(&random, generations: 4, lengths: 10_000...40_000)
    let bytes = archive.storage.bytes
    for _ in 0..<20 {
      let start = Int.random(in: 0..<bytes.count / 2, using: &random)
      var damaged = bytes
      damaged.replaceSubrange(
        start..<start + bytes.count / 3, with: random.bytes(bytes.count / 3))
      let storage = MemoryStorage(damaged)
      let report = try ArchiveRepair.run(storage)
      let reader = try ArchiveReader(storage.map())
      #expect(report.firstLost != nil)
      for (cid, body) in archive.bodies {
        do {
          let found = try reader.body(of: cid)
          #expect(found == nil || found == body)
        } catch is ArchiveError {}
      }
    }
  }

  @Test(.enabled(if: IndependentReader.isPresent, Comment(rawValue: IndependentReader.absence)))
  func `is what the document makes of the bytes`() throws {
    var random = SeededGenerator(printing: 0x9a9)
    let folder = try TemporaryFolder()
    for generations in [1, 4, 10] {
      let archive = try sample(&random, generations: generations, lengths: 500...30_000)
      let path = try folder.write("protected.car.zst", archive.storage.bytes)
      let (status, output) = try IndependentReader.checkParity(path)
      #expect(status == 0, "\(String(decoding: output, as: UTF8.self))")
    }
  }

  @Test func `holds the magic once in each frame, whatever the protected bytes are`() throws {
    var random = SeededGenerator(printing: 0x9aa)
    var bytes = random.bytes(100_000)
    let group = ParityGroup(
      protecting: 0..<UInt64(bytes.count), footerLength: 0, percent: 5, at: UInt64(bytes.count))
    func frames() throws -> [UInt8] {
      var encoder = try ParityEncoder(group, of: MappedFile(copying: bytes), footer: [])
      var frames: [UInt8] = []
      try encoder.write { frames.append($0) }
      return frames
    }
    // The first bytes of the second row of blocks are chosen so that the parity begins with the
    // magic.
    let place = Int(group.parityOffset) + SkippableFrame.headerLength - bytes.count
    let row = group.rowLength
    for index in 0..<ArchiveMagic.length {
      for value in 0...255 {
        bytes[row + index] = UInt8(value)
        let made = try frames()
        // The last one brings the magic about, and with it a mask.
        if made[place + index] == ArchiveMagic.bytes[index] || made.span.u64(64) != 0 { break }
      }
    }
    let made = try frames()
    var (count, next) = (0, 0)
    while let magic = ArchiveMagic.next(in: made.span, from: next) {
      (count, next) = (count + 1, magic + 1)
    }
    #expect(count == 2 * group.pageCount + 1)
    // It is another mask, and heals anyway.
    let whole = bytes + made
    let found = FoundParity.all(in: MappedFile(copying: whole))
    #expect(found.first.map { $0.group.mask != 0 } ?? false)
    var damaged = whole
    for index in 3000..<5000 { damaged[index] = 0 }
    let storage = MemoryStorage(damaged)
    _ = try ParityHealing.heal(storage, found)
    #expect(storage.bytes == whole)
  }

  @Test func `of two archives, one behind the other, loses neither`() throws {
    var random = SeededGenerator(printing: 0x9ab)
    let folder = try TemporaryFolder()
    let first = try sample(&random, generations: 2).storage.bytes
    let second = try sample(&random, generations: 3).storage.bytes
    for bytes in [first + second, second + first, first + first] {
      let path = try folder.write("glued.car.zst", bytes)
      guard let alignment = try ParityAlignment(MappedFile(FilePath(path))) else { continue }
      let aligned = MemoryStorage()
      try alignment.write(to: aligned)
      #expect(try !alignment.losesNothing(to: ArchiveReader(aligned.map())))
    }
  }

  @Test func `merges the groups of many appends, so that few are left`() throws {
    var random = SeededGenerator(printing: 0x9ac)
    let archive = try sample(&random, generations: 70, lengths: 80...400)
    let groups = try FoundParity.all(in: archive.storage.map())
    #expect(groups.count <= 20, "\(groups.count) groups")
    // All of the file is protected.
    let covered = groups.flatMap {
      [$0.group.range, $0.group.offset..<$0.group.footer.upperBound]
    }.merged()
    #expect(covered == [0..<UInt64(archive.storage.bytes.count)])
  }

  @Test func `of damaged groups stays, for only their own can heal them`() throws {
    var random = SeededGenerator(printing: 0x9ae)
    let archive = try sample(&random, generations: 6, lengths: 80...400)
    let whole = archive.storage.bytes
    // Behind the second generation's first frames.
    let place = Int(archive.generations[1].committedLength) + 40
    archive.storage.bytes[place] ^= 0x20
    for _ in 0..<6 { try archive.append([random.text(200)]) }
    #expect(try healed(archive.storage.bytes).starts(with: whole))
  }

  @Test func `is not added to a damaged archive`() throws {
    var random = SeededGenerator(printing: 0x9af)
    let archive = AppendedArchive()
    try archive.append([random.bytes(30_000)])
    archive.storage.bytes[5000] ^= 1
    let bytes = archive.storage.bytes
    #expect(throws: ArchiveError.self) {
      try ArchiveWriter.protect(archive.storage, percent: 5)
    }
    #expect(archive.storage.bytes == bytes)
  }

  @Test func `is added to an archive that has none, and not a second time`() throws {
    var random = SeededGenerator(printing: 0x9ad)
    let archive = AppendedArchive()
    for _ in 0..<5 { try archive.append([random.bytes(30_000)]) }
    let before = archive.storage.bytes
    let first = try ArchiveWriter.protect(archive.storage, percent: 5)
    #expect(archive.storage.bytes.starts(with: before) && first.bytesAdded > 0)
    #expect(try ArchiveWriter.protect(archive.storage, percent: 5).bytesAdded == 0)
    try archive.check()
    let bytes = archive.storage.bytes
    for place in stride(from: 0, to: bytes.count, by: 997) {
      var damaged = bytes
      damaged[place] ^= 0x10
      #expect(try healed(damaged) == bytes, "byte \(place)")
    }
  }
}
