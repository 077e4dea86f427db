import Age
import Archive
import ArchiveTestSupport
import TestSupport
import Testing

@testable import Sealing

/// The operations before which the power may fail.
private let disturbed: Set<StorageOperation> = [.write, .synchronize, .truncate]

@Suite struct `A sealed archive whose machine loses power` {
  @Test func `keeps what was committed, and is gone on with`() throws {
    for var round in Torture.rounds(2, from: 0x5ea4_0000) {
      let owner = try Owner()
      let steps = (0..<3).map { number in
        number == 1
          ? BackupStep.tiny(using: &round.random)
          : BackupStep.full(using: &round.random, hasCheckpoints: number == 2)
      }
      var states: [[UInt8]] = []
      for count in 1...steps.count { states.append(try plainArchive(Array(steps[..<count]))) }
      let total = try Self.run(steps, owner, MemoryStorage()).file.count(of: disturbed)
      for number in 1...total + 1 {
        let conditions = MemoryStorage.Conditions([StorageFault(number, of: disturbed, .forEver)])
        let (file, done) = try Self.run(steps, owner, MemoryStorage([], conditions))
        for _ in 0..<6 {
          let loss = PowerLoss(using: &round.random)
          do {
            try Self.check(
              file.bytes(after: loss), owner, done > 0 ? states[done - 1] : nil, &round.random)
          } catch {
            Issue.record("\(round), before operation \(number), \(loss): \(error)")
          }
        }
      }
    }
  }

  /// Performs steps as far as the storage goes; returns how many were committed.
  private static func run(_ steps: [BackupStep], _ owner: Owner, _ file: MemoryStorage) throws
    -> (file: MemoryStorage, done: Int)
  {
    var done = 0
    do {
      for step in steps {
        let storage = try done == 0 ? owner.create(in: file) : owner.open(file)
        try step.perform(on: storage)
        done += 1
      }
    } catch is ArchiveError {}
    return (file, done)
  }

  /// Checks what a loss of power has left, and that a writer continues from there.
  private static func check(
    _ bytes: [UInt8], _ owner: Owner, _ committed: [UInt8]?, _ random: inout SeededGenerator
  ) throws {
    guard let committed else { return }
    let plain = try owner.plain(bytes)
    try #require(plain.starts(with: committed))
    let file = SimpleStorage(bytes)
    let more = BackupStep.one(500, using: &random)
    try more.perform(on: owner.open(file))
    let after = try owner.plain(file.bytes)
    try #require(after.starts(with: committed))
    let verification = try ArchiveReader(owner.map(file.bytes)).verify(workers: 1)
    try #require(verification.isIntact, "\(verification.findings)")
    try #require(SealedCheck(MappedFile(copying: file.bytes)).flaws.isEmpty)
  }

  @Test(arguments: [true, false], [nil, 60, 300])
  func `has the old bytes of a piece or the new ones`(_ isCommitted: Bool, _ flipped: Int?) throws {
    var random = SeededGenerator(printing: 0x5ea5_0000)
    let owner = try Owner()
    let old = random.bytes(3000)
    let new = Array(old[..<1200]) + random.bytes(100) + old[1300...]
    let base = MemoryStorage()
    let storage = try owner.create(in: base)
    for start in stride(from: 0, to: 3000, by: 1000) {
      try storage.write(Array(old[start..<start + 1000]).span, at: UInt64(start))
      try storage.synchronize()
    }
    if isCommitted { try storage.commit() }
    var bytes = base.bytes
    // A damaged header, or a damaged chunk, of the piece.
    if let flipped {
      guard isCommitted else { return }
      bytes[SealedFile.places(bytes)[1].lowerBound + flipped] ^= 1
    }
    for number in 1...8 {
      let conditions = MemoryStorage.Conditions([StorageFault(number, of: disturbed, .forEver)])
      let file = MemoryStorage(bytes, conditions)
      var isDone = false
      do {
        let storage = try owner.open(file)
        try storage.write(Array(new[1200..<1300]).span, at: 1200)
        isDone = true
        try storage.commit()
      } catch is ArchiveError {}
      for _ in 0..<20 {
        let loss = PowerLoss(using: &random)
        let left = file.bytes(after: loss)
        let read = try owner.plain(left)
        let reopened = try owner.open(SimpleStorage(left)).everything()
        #expect(read == reopened, "before operation \(number), \(loss)")
        // A chunk that is damaged reads as zeros, and what is written again is whole.
        let zeros = Array(old[..<1000]) + [UInt8](repeating: 0, count: 1000) + old[2000...]
        var patched = zeros
        patched.replaceSubrange(1200..<1300, with: new[1200..<1300])
        let allowed = flipped == 300 ? [zeros, patched] : [old, new]
        let isAllowed = isDone ? read == allowed[1] : allowed.contains(read)
        #expect(isAllowed, "before operation \(number), \(loss)")
        // The power goes again while the next writer mends it.
        for again in 1...4 {
          let fault = StorageFault(again, of: disturbed, .forEver)
          let second = MemoryStorage(left, .init([fault]))
          do { _ = try owner.open(second) } catch is ArchiveError {}
          let left = second.bytes(after: PowerLoss(using: &random))
          let isSame = try owner.plain(left) == read
          #expect(isSame, "before operation \(number), \(loss), and before \(again)")
        }
      }
    }
  }

  @Test(arguments: [nil, 0, 1])
  func `opens with the old keys or with the new ones`(_ damaged: Int?) throws {
    var random = SeededGenerator(printing: 0x5ea6_0000)
    let (first, second) = (try Owner(), try Owner())
    let plain = random.bytes(500)
    var bytes = try first.sealed(plain)
    if let damaged { bytes[damaged * KeySlots.slotLength + 100] ^= 4 }
    for isRemoval in [false, true] {
      if isRemoval {
        let file = SimpleStorage(bytes)
        var keys = try SealedKeys(file, first.ring)
        try keys.add(second.recipient)
        bytes = file.bytes
        if let damaged { bytes[damaged * KeySlots.slotLength + 100] ^= 4 }
      }
      for number in 1...5 {
        let conditions = MemoryStorage.Conditions([StorageFault(number, of: disturbed, .forEver)])
        let file = MemoryStorage(bytes, conditions)
        var isDone = false
        do {
          var keys = try SealedKeys(file, first.ring)
          try isRemoval ? keys.remove(first.recipient.name) : keys.add(second.recipient)
          isDone = true
        } catch is ArchiveError {}
        for _ in 0..<40 {
          let loss = PowerLoss(using: &random)
          let left = file.bytes(after: loss)
          let opening = [first, second].filter { owner in (try? owner.plain(left)) == plain }
            .map(\.identity.recipient)
          let old = isRemoval ? [first, second] : [first]
          let new = isRemoval ? [second] : [first, second]
          let allowed = (isDone ? [new] : [old, new]).map { $0.map(\.identity.recipient) }
          #expect(allowed.contains(opening), "before operation \(number), \(loss)")
          // A writer makes both frames whole.
          let reopened = SimpleStorage(left)
          _ = try second.layer.storage(in: reopened, or: first)
          #expect(try KeySlots(MappedFile(copying: reopened.bytes)).areBothWhole)
        }
      }
    }
  }
}

extension SealedLayer {
  /// Opens an archive with one's own key, or with that of another.
  fileprivate func storage(in file: any ArchiveStorage, or owner: Owner) throws
    -> any ArchiveStorage
  {
    do { return try storage(in: file) } catch SealedError.wrongKey { return try owner.open(file) }
  }
}
