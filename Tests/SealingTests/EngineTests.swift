import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@testable import Sealing

@Suite struct `An archive that is written to a sealed storage` {
  @Test func `has the same bytes as a plain one`() throws {
    for var round in Torture.rounds(4, from: 0x5ea2_0000) {
      let owner = try Owner()
      let (plain, file) = (SimpleStorage(), SimpleStorage())
      var old: [BackupStep] = []
      for number in 0..<4 {
        let step = BackupStep.full(
          using: &round.random, large: number == 2 ? 9 << 20 : 70_000,
          old: old.flatMap(\.sections), hasCheckpoints: number == 1)
        try step.perform(on: plain)
        let storage = number == 0 ? try owner.create(in: file) : try owner.open(file)
        try step.perform(on: storage)
        old.append(step)
        let isSame = try owner.plain(file.bytes) == plain.bytes
        #expect(isSame, "\(round), generation \(number)")
        #expect(try owner.verification(file.bytes)?.worst == nil)
      }
      #expect(
        try ArchiveContents(of: ArchiveReader(owner.map(file.bytes)))
          == ArchiveContents(of: ArchiveReader(MappedFile(copying: plain.bytes))))
    }
  }

  @Test func `grows by little with each of many small generations`() throws {
    var random = SeededGenerator(printing: 0x5ea3_0000)
    let owner = try Owner()
    let (plain, file) = (SimpleStorage(), SimpleStorage())
    var storage = try owner.create(in: file)
    var more: [Int] = []
    var tables = 0
    for _ in 0..<300 {
      let step = BackupStep.one(300, using: &random)
      let (plainBefore, before) = (plain.writtenCount, file.writtenCount)
      try step.perform(on: plain)
      try step.perform(on: storage)
      more.append(file.writtenCount - before - (plain.writtenCount - plainBefore))
      storage = try owner.open(file)
      let layout = try SealedLayout(
        MappedFile(copying: file.bytes), owner.archiveIdentity(file.bytes))
      tables = max(tables, layout.tables.count)
    }
    let isSame = try owner.plain(file.bytes) == plain.bytes
    #expect(isSame)
    more.sort()
    let mean = more.reduce(0, +) / more.count
    Torture.report(
      counts:
        "more than a plain append: mean \(mean), median \(more[150]), 95 % \(more[285]), most \(more[299]) bytes; at most \(tables) tables"
    )
    #expect(tables <= 8)
    #expect(mean < 3000 && more[285] <= 6000)
  }

  @Test func `says of its end alone that it is sealed`() throws {
    var random = SeededGenerator(seed: 1)
    let owner = try Owner()
    for count in [1, 40, 200] {
      let bytes = try owner.sealed(random.bytes(count * 10), piece: 10)
      let (end, beginning) = (
        bytes.suffix(StorageLayers.tellingLength), bytes.prefix(StorageLayers.tellingLength)
      )
      let isKnown = (owner.layer.knows(end: end.span), owner.layer.knows(beginning: beginning.span))
      #expect(isKnown == (true, true))
    }
    let plain = try plainArchive([.one(9000, using: &random)]).suffix(4096)
    let isKnown = owner.layer.knows(end: plain.span)
    #expect(!isKnown)
  }

  @Test func `opens soon, however many pieces it has`() throws {
    let owner = try Owner()
    let count = 10_000
    let bytes = try owner.sealed([UInt8](repeating: 1, count: count), piece: 1, committing: 5000)
    let (identity, file) = (try owner.archiveIdentity(bytes), MappedFile(copying: bytes))
    let clock = ContinuousClock()
    var layouts: [SealedLayout] = []
    let elapsed = try clock.measure { layouts.append(try SealedLayout(file, identity)) }
    #expect(layouts[0].pieces.count == count)
    let storage = try owner.open(SimpleStorage(bytes))
    let appending = try clock.measure {
      for number in 0..<100 {
        try storage.write([2].span, at: UInt64(count + number))
        try storage.synchronize()
      }
    }
    let bare = MappedFile(copying: SealedFile(bytes).withoutTables.bytes)
    let scanning = try clock.measure { layouts.append(try SealedLayout(bare, identity)) }
    #expect(layouts[1].pieces.count == count)
    Torture.report(
      counts:
        "\(count) pieces opened in \(elapsed), found without tables in \(scanning), 100 appended in \(appending)"
    )
    #expect(elapsed < .seconds(1))
  }

  @Test func `reads little to be opened, and only the chunks that are wanted`() throws {
    var random = SeededGenerator(seed: 2)
    let owner = try Owner()
    let plain = random.bytes(5 << 20)
    let bytes = try owner.sealed(plain, piece: 1 << 20, committing: 1)
    let source = CountingSource(bytes)
    let fetched = try source.file()
    let map = try owner.layer.map(fetched)
    #expect(source.requests.count <= 4)
    let before = source.requests.count
    let range = 3_000_000..<3_000_100
    #expect(map.withBytes(reading: [range]) { $0.array(range) } == Array(plain[range]))
    let requests = source.requests[before...]
    #expect(requests.count == 1)
    #expect(requests.reduce(0) { $0 + $1.count } < 300_000)
  }
}
