import Age
import Archive
import ArchiveTestSupport
import TestSupport
import Testing

@testable import Sealing

/// A sealed archive of some generations that keeps parity, and the plain one that is in it.
private struct Protected {
  let owner: Owner
  let file: SimpleStorage
  let plain: [UInt8]
  var bytes: [UInt8] { file.bytes }

  init(_ steps: [BackupStep], percent: Int = 10) throws {
    owner = try Owner()
    file = SimpleStorage()
    let first = try owner.create(in: file)
    #expect(first.keepParity(percent: percent))
    for (number, step) in steps.enumerated() {
      try step.perform(on: number == 0 ? first : owner.open(file))
    }
    plain = try plainArchive(steps)
  }

  /// Heals bytes as one without the key does.
  func healed(_ bytes: [UInt8]) throws -> [UInt8] {
    let file = SimpleStorage(bytes)
    _ = try owner.layer.heal(file)
    return file.bytes
  }

  /// Whether one without the key makes the archive of it again, byte for byte.
  func heals(_ damaged: [UInt8]) throws -> Bool { try healed(damaged) == bytes }

  static func flaws(_ bytes: [UInt8]) throws -> [ArchiveError] {
    try SealedCheck(MappedFile(copying: bytes)).flaws
  }
}

@Suite struct `Parity of a sealed archive` {
  private static func steps(_ random: inout SeededGenerator) -> [BackupStep] {
    [40_000, 300, 120_000, 800, 5_000].map { .one($0, using: &random) }
  }

  @Test func `is passed over by readers, and stands before each table`() throws {
    var random = SeededGenerator(printing: 0x5ea1_9000)
    let archive = try Protected(Self.steps(&random))
    #expect(try archive.owner.plain(archive.bytes) == archive.plain)
    #expect(try Protected.flaws(archive.bytes) == [])
    let kinds = SealedFile.places(archive.bytes).compactMap {
      SealedFrame(archive.bytes.span, at: $0.lowerBound)?.kind
    }
    for (number, kind) in kinds.enumerated() where kind == .table {
      #expect(kinds[number - 1] == .parity)
    }
    #expect(kinds.count { $0 == .table } == 5)
    let map = try archive.owner.map(archive.bytes)
    #expect(map.source?.parityPercent == 10)
    #expect(try map.source?.assessParity()?.damagedCount == 0)
  }

  @Test func `is in a new archive from the start where the layer says so`() throws {
    var random = SeededGenerator(printing: 0x5ea1_9010)
    let step = BackupStep.one(40_000, using: &random)
    let owner = try Owner()
    func layer(_ percent: Int?) -> SealedLayer { SealedLayer(owner.ring, parity: { percent }) }
    func percent(_ file: SimpleStorage) throws -> Int? {
      try owner.map(file.bytes).source?.parityPercent
    }
    let new = SimpleStorage()
    try step.perform(on: layer(7).create(in: new, for: [owner.recipient]))
    #expect(try percent(new) == 7)
    // What is appended keeps it.
    try BackupStep.one(800, using: &random).perform(on: layer(nil).storage(in: new))
    #expect(try percent(new) == 7)
    let left = SimpleStorage()
    let killed = try layer(7).create(in: left, for: [owner.recipient])
    try killed.write([1, 2, 3].span, at: 0)
    try killed.synchronize()
    try killed.truncate(to: 0)
    try step.perform(on: layer(7).storage(in: left))
    #expect(try percent(left) == 7)
  }

  @Test func `is not added to an archive that has been written without`() throws {
    var random = SeededGenerator(printing: 0x5ea1_9011)
    let owner = try Owner()
    let file = SimpleStorage()
    try BackupStep.one(40_000, using: &random).perform(on: owner.create(in: file))
    let layer = SealedLayer(
      owner.ring, recipients: [owner.recipient],
      parity: {
        Issue.record("there is no new archive")
        return 5
      })
    try BackupStep.one(800, using: &random).perform(on: layer.storage(in: file))
    let map = try owner.map(file.bytes)
    #expect(map.source?.parityPercent == nil)
    // Nor to one that is made of it.
    let copy = SimpleStorage()
    let storage = try layer.storage(beginning: copy, of: [map], for: [])
    try storage.write([1].span, at: 0)
    try storage.commit()
    #expect(try owner.map(copy.bytes).source?.parityPercent == nil)
  }

  @Test func `heals any byte without the key, but for those of the last table and the keys`() throws
  {
    var random = SeededGenerator(printing: 0x5ea1_9001)
    let archive = try Protected(Self.steps(&random))
    let last = try #require(
      SealedFrame.lastTable(in: MappedFile(copying: archive.bytes), before: archive.bytes.count))
    for place in stride(from: KeySlots.length, to: last.range.lowerBound, by: 997) {
      var bytes = archive.bytes
      bytes[place] ^= UInt8.random(in: 1...255, using: &random)
      #expect(try !Protected.flaws(bytes).isEmpty, "byte \(place)")
      #expect(try archive.heals(bytes), "byte \(place)")
    }
    // Around the frames, too, where each byte says something.
    for frame in SealedFile.places(archive.bytes).dropLast() {
      for place in [0, 5, 9, 25, 30, 40].map({ frame.lowerBound + $0 }) + [frame.upperBound - 1] {
        var bytes = archive.bytes
        bytes[place] ^= 1
        #expect(try archive.heals(bytes), "byte \(place) of \(frame)")
      }
    }
  }

  @Test func `heals a lost sector anywhere, and damage in one piece`() throws {
    var random = SeededGenerator(printing: 0x5ea1_9002)
    let archive = try Protected(Self.steps(&random))
    let end = try #require(
      SealedFrame.lastTable(in: MappedFile(copying: archive.bytes), before: archive.bytes.count)
    ).range.lowerBound
    for start in stride(from: KeySlots.length, to: end, by: 4096) {
      var bytes = archive.bytes
      for place in start..<min(start + 4096, end) { bytes[place] = 0 }
      #expect(try archive.heals(bytes), "sector at \(start)")
    }
  }

  @Test func `leaves alone what was written over since it was made`() throws {
    var random = SeededGenerator(printing: 0x5ea1_9003)
    let archive = try Protected(Self.steps(&random))
    // Written over, and no table written since: the parity knows the piece as it was.
    let file = SimpleStorage(archive.bytes)
    let storage = try archive.owner.open(file)
    let place = UInt64(archive.plain.count / 2)
    let old = try storage.read(100, at: place)
    let new = old.map { ~$0 }
    try storage.write(new.span, at: place)
    try storage.synchronize()
    let between = file.bytes
    #expect(try archive.healed(between) == between)
    #expect(try Array(archive.owner.plain(between)[Int(place)..<Int(place) + 100]) == new)
    // With the next table there is new parity of all.
    try storage.commit()
    let bytes = file.bytes
    #expect(try LayerParity.assess(MappedFile(copying: bytes))?.damagedCount == 0)
    let target = SealedFile.places(bytes)[0].lowerBound + 2000
    var damaged = bytes
    for index in 0..<4096 { damaged[target + index] = 0xaa }
    #expect(try archive.healed(damaged) == bytes)
  }

  @Test func `is added to an archive that has none, and is not made twice`() throws {
    var random = SeededGenerator(printing: 0x5ea1_9004)
    let owner = try Owner()
    let file = SimpleStorage()
    for step in Self.steps(&random) {
      try step.perform(on: file.bytes.isEmpty ? owner.create(in: file) : owner.open(file))
    }
    let before = file.bytes
    let plain = try owner.plain(before)
    let added = try ArchiveWriter.protect(owner.open(file), percent: 5).bytesAdded
    #expect(added > 0 && Int(added) == file.bytes.count - before.count)
    #expect(try owner.plain(file.bytes) == plain)
    #expect(try Protected.flaws(file.bytes) == [])
    #expect(try owner.verification(file.bytes)?.isIntact == true)
    let protected = file.bytes
    #expect(try ArchiveWriter.protect(owner.open(file), percent: 5).bytesAdded == 0)
    #expect(file.bytes == protected)
    // What is appended is protected, too.
    try BackupStep.one(20_000, using: &random).perform(on: owner.open(file))
    var damaged = file.bytes
    damaged[protected.count + 1000] ^= 0x10
    let healing = SimpleStorage(damaged)
    _ = try owner.layer.heal(healing)
    #expect(healing.bytes == file.bytes)
    // More of it, when more is requested.
    #expect(try ArchiveWriter.protect(owner.open(file), percent: 20).bytesAdded > added)
    #expect(try owner.map(file.bytes).source?.parityPercent == 20)
  }

  @Test(arguments: [1, 5]) func `is kept where the last table is lost`(_ count: Int) throws {
    var random = SeededGenerator(printing: 0x5ea1_9008)
    let archive = try Protected(Array(Self.steps(&random).prefix(count)))
    var bytes = archive.bytes
    bytes[bytes.count - 100] ^= 1
    #expect(try !Protected.flaws(bytes).isEmpty)
    for damaged in [bytes, Array(bytes.dropLast(50))] {
      let file = SimpleStorage(damaged)
      try archive.owner.open(file).commit()
      #expect(try Protected.flaws(file.bytes) == [])
      #expect(try archive.owner.plain(file.bytes) == archive.plain)
      #expect(try archive.owner.map(file.bytes).source?.parityPercent == 10)
      #expect(try LayerParity.assess(MappedFile(copying: file.bytes))?.damagedCount == 0)
      #expect(try archive.owner.verification(file.bytes)?.isIntact == true)
    }
  }

  @Test func `does not harm the keys when bytes are put back into their places`() throws {
    var random = SeededGenerator(printing: 0x5ea1_9009)
    let archive = try Protected(Self.steps(&random))
    let whole = archive.bytes
    for place in [0, 100, 7000, 9000, 16_384, 17_000, 30_000, whole.count / 2, whole.count * 3 / 4]
    {
      for count in [-900, -1, 1, 700] {
        var bytes = whole
        if count < 0 {
          bytes.removeSubrange(place..<place - count)
        } else {
          bytes.insert(contentsOf: random.bytes(count), at: place)
        }
        let old = MappedFile(copying: bytes)
        let alignment = try #require(try ParityAlignment(old))
        let new = SimpleStorage()
        try alignment.write(to: new)
        try archive.owner.layer.restoreUnprotected(of: old, in: new)
        _ = try archive.owner.layer.heal(new)
        let isSame = new.bytes == whole
        #expect(isSame, "\(count) at \(place)")
        #expect(try archive.owner.layer.keepsAll(of: old, in: new.map()), "\(count) at \(place)")
      }
    }
    // A file that has lost its key frames keeps less than one that has them.
    var lost = whole
    KeySlots.forEach(in: MappedFile(copying: whole)) { start in
      for place in start..<start + KeySlots.slotLength { lost[place] = 0 }
    }
    #expect(
      try !archive.owner.layer.keepsAll(
        of: MappedFile(copying: whole), in: MappedFile(copying: lost)))
  }

  @Test func `stays small over many generations`() throws {
    var random = SeededGenerator(printing: 0x5ea1_9005)
    let steps = (0..<60).map { _ in BackupStep.one(1500, using: &random) }
    let archive = try Protected(steps)
    let groups = LayerParity.regions(in: MappedFile(copying: archive.bytes)).count
    #expect(groups <= 16, "\(groups) groups")
    #expect(try archive.owner.plain(archive.bytes) == archive.plain)
    for place in stride(from: KeySlots.length, to: archive.bytes.count - 4000, by: 7919) {
      var bytes = archive.bytes
      bytes[place] ^= 0x55
      #expect(try archive.heals(bytes), "byte \(place)")
    }
  }

  @Test func `is kept when an archive is made of it`() throws {
    var random = SeededGenerator(printing: 0x5ea1_9006)
    let archive = try Protected(Self.steps(&random), percent: 7)
    let source = try archive.owner.map(archive.bytes)
    let file = SimpleStorage()
    let storage = try archive.owner.layer.storage(beginning: file, of: [source], for: [])
    try storage.write(archive.plain.span, at: 0)
    try storage.commit()
    #expect(try archive.owner.map(file.bytes).source?.parityPercent == 7)
    #expect(try archive.owner.plain(file.bytes) == archive.plain)
  }

  @Test func `survives a loss of power`() throws {
    var random = SeededGenerator(printing: 0x5ea1_9007)
    let owner = try Owner()
    let steps = Self.steps(&random)
    let states = try (1...steps.count).map { try plainArchive(Array(steps[..<$0])) }
    func run(_ file: MemoryStorage) throws -> Int {
      var done = 0
      do {
        for step in steps {
          let storage = try done == 0 ? owner.create(in: file) : owner.open(file)
          _ = storage.keepParity(percent: 10)
          try step.perform(on: storage)
          done += 1
        }
      } catch is ArchiveError {}
      return done
    }
    let whole = MemoryStorage()
    _ = try run(whole)
    let disturbed: Set<StorageOperation> = [.write, .synchronize, .truncate]
    for number in 1...whole.count(of: disturbed) {
      let conditions = MemoryStorage.Conditions([StorageFault(number, of: disturbed, .forEver)])
      let file = MemoryStorage([], conditions)
      let done = try run(file)
      guard done > 0 else { continue }
      for _ in 0..<2 {
        let bytes = file.bytes(after: PowerLoss(using: &random))
        let plain = try owner.plain(bytes)
        let committed = states[done - 1]
        #expect(plain.starts(with: committed), "operation \(number)")
        // A writer continues, and all of it is protected then.
        let next = SimpleStorage(bytes)
        try BackupStep.one(3000, using: &random).perform(on: owner.open(next))
        #expect(try LayerParity.assess(MappedFile(copying: next.bytes))?.damagedCount == 0)
        #expect(try owner.verification(next.bytes)?.isIntact == true)
        #expect(try Protected.flaws(next.bytes) == [], "operation \(number)")
      }
    }
  }
}
