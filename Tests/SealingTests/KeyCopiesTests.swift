import Age
import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@testable import Sealing

/// The operations before which the power may fail.
private let disturbed: Set<StorageOperation> = [.write, .synchronize, .truncate]

/// A sealed archive of some generations, and where its key frames lie.
private struct Sample {
  let owner, other: Owner
  let bytes, plain: [UInt8]
  var copies: [Int] { Self.copies(bytes) }

  init(parity: Int? = nil, lengths: [Int] = [40_000, 300, 120_000, 800]) throws {
    var random = SeededGenerator(printing: 0x5ea2_c0b1)
    (owner, other) = (try Owner(), try Owner())
    let file = SimpleStorage()
    let steps = lengths.map { BackupStep.one($0, using: &random) }
    let first = try owner.create(in: file)
    if let parity { _ = first.keepParity(percent: parity) }
    for (number, step) in steps.enumerated() {
      try step.perform(on: number == 0 ? first : owner.open(file))
    }
    var keys = try SealedKeys(file, owner.ring)
    try keys.add(other.recipient)
    (bytes, plain) = (file.bytes, try plainArchive(steps))
  }

  static func copies(_ bytes: [UInt8]) -> [Int] {
    var places: [Int] = []
    KeySlots.forEach(in: MappedFile(copying: bytes)) { places.append($0) }
    return places
  }

  /// The archive with zeros in some places.
  func zeroed(_ ranges: [Range<Int>]) -> [UInt8] {
    var bytes = bytes
    for range in ranges { for place in range { bytes[place] = 0 } }
    return bytes
  }

  func healed(_ bytes: [UInt8]) throws -> [UInt8] {
    let file = SimpleStorage(bytes)
    _ = try owner.layer.heal(file)
    return file.bytes
  }

  /// Where an identity opens one of the age files that lie anywhere among bytes.
  static func places(opening identity: AgeIdentity, in bytes: [UInt8]) -> [Int] {
    let word = Array("age-encryption.org/v1\n".utf8)
    return bytes.indices.dropLast(word.count).filter { place in
      guard bytes[place] == word[0], bytes[place..<place + word.count].elementsEqual(word) else {
        return false
      }
      // An error here says only that it does not open.
      let rest = Array(bytes[place..<min(bytes.count, place + 1000)])
      return (try? AgeHeader(parsing: rest.span).unwrap(with: [identity])) != nil
    }
  }
}

@Suite struct `The key frames of a sealed archive` {
  @Test func `lie apart, at most four, and none behind the last table`() throws {
    let sample = try Sample()
    #expect(sample.copies.count == 3)
    #expect(sample.copies[..<2] == [0, KeySlots.slotLength])
    #expect(sample.copies[2] > 40_000)
    // The file becomes many times as long.
    let file = SimpleStorage(sample.bytes)
    var random = SeededGenerator(printing: 0x5ea2_c0b2)
    for _ in 0..<3 {
      try BackupStep.one(17 << 20, using: &random).perform(on: sample.owner.open(file))
    }
    let copies = Sample.copies(file.bytes)
    #expect(copies.count == 4)
    #expect(copies[3] > 16 << 20)
    #expect(try SealedCheck(MappedFile(copying: file.bytes)).flaws == [])
    #expect(try sample.owner.verification(file.bytes)?.isIntact == true)
  }

  @Test(arguments: [nil, 5])
  func `open it as long as one is left, and are put back`(_ parity: Int?) throws {
    let sample = try Sample(parity: parity)
    let slots = sample.copies.map { $0..<$0 + KeySlots.slotLength }
    for kept in slots.indices {
      let damaged = sample.zeroed(slots.indices.filter { $0 != kept }.map { slots[$0] })
      #expect(try sample.owner.plain(damaged) == sample.plain, "\(kept)")
      #expect(try sample.other.plain(damaged) == sample.plain, "\(kept)")
      #expect(try SealedCheck(MappedFile(copying: damaged)).flaws != [], "\(kept)")
      let file = SimpleStorage(try sample.healed(damaged))
      _ = try sample.owner.open(file)
      let isSame = file.bytes == sample.bytes
      #expect(isSame, "\(kept)")
    }
    let none = sample.zeroed(slots)
    if parity == nil {
      #expect(throws: SealedError.noKeySlot) { try sample.owner.plain(none) }
    } else {
      let isSame = try sample.healed(none) == sample.bytes
      #expect(isSame)
    }
  }

  @Test(arguments: [nil, 5], [1, 8, 100, 4096, 8191])
  func `open it where bytes were lost or put in before its pieces`(_ parity: Int?, _ count: Int)
    throws
  {
    let sample = try Sample(parity: parity)
    for place in [0, 24, 100, 8190, 8192, 9000, 16_000] {
      var less = sample.bytes
      less.removeSubrange(place..<place + count)
      let more =
        sample.bytes[..<place] + [UInt8](repeating: 7, count: count)
        + sample.bytes[place...]
      // A piece that has lost bytes itself is not whole.
      let isPieceWhole = place + count <= KeySlots.length
      for (damaged, isLess) in [(less, true), (Array(more), false)] {
        let comment: Comment = "\(isLess ? -count : count) at \(place)"
        if isPieceWhole || !isLess {
          #expect(try sample.owner.plain(damaged) == sample.plain, comment)
          #expect(try sample.owner.open(SimpleStorage(damaged)).isDisplaced, comment)
        }
        guard place < KeySlots.slotLength || isLess else { continue }
        // Nothing is written over what has been moved.
        let file = SimpleStorage(damaged)
        var keys = try SealedKeys(file, sample.owner.ring)
        let third = try Owner().recipient
        #expect(throws: ArchiveError.self, comment) { try keys.add(third) }
        #expect(file.bytes == damaged, comment)
      }
    }
  }

  @Test(arguments: [nil, 5])
  func `open it where neither its beginning nor its end tells what it is`(_ parity: Int?) throws {
    let sample = try Sample(parity: parity)
    var bytes = sample.bytes
    for place in 0..<24 { bytes[place] = 0xaa }
    bytes += [1, 2, 3, 4, 5]
    let file = MappedFile(copying: bytes)
    let layer = sample.owner.layer
    #expect(layer.knows(remains: file))
    #expect(try sample.owner.plain(bytes) == sample.plain)
    #expect(!layer.knows(remains: MappedFile(copying: sample.plain)))
  }

  @Test(arguments: [nil, 5])
  func `leave nothing that a removed key opens, in parity neither`(_ parity: Int?) throws {
    var random = SeededGenerator(printing: 0x5ea2_c0b3)
    let lengths = (0..<12).map { _ in Int.random(in: 300...9000, using: &random) }
    let sample = try Sample(parity: parity, lengths: lengths)
    #expect(Sample.places(opening: sample.other.identity, in: sample.bytes).count == 3)
    let file = SimpleStorage(sample.bytes)
    var keys = try SealedKeys(file, sample.owner.ring)
    try keys.remove(sample.other.recipient.name)
    let bytes = file.bytes
    #expect(Sample.places(opening: sample.other.identity, in: bytes) == [])
    #expect(Sample.places(opening: sample.owner.identity, in: bytes).count == 3)
    #expect(try SealedCheck(MappedFile(copying: bytes)).flaws == [])
    #expect(try sample.owner.plain(bytes) == sample.plain)
    // What each parity, also one that no longer counts, makes of the copy.
    let copy = sample.copies[2]..<sample.copies[2] + KeySlots.slotLength
    for place in SealedFile.places(bytes) {
      guard SealedFrame(bytes.span, at: place.lowerBound)?.kind == .parity else { continue }
      var part = Array(bytes[..<place.upperBound])
      for place in copy where place < part.count { part[place] = 0 }
      for place in 0..<KeySlots.length { part[place] = 0 }
      let healed = try sample.healed(part)
      #expect(Sample.places(opening: sample.other.identity, in: healed) == [])
      #expect(Sample.places(opening: sample.owner.identity, in: healed).count == 3)
    }
  }

  @Test func `are not changed where parity could no longer heal what is damaged`() throws {
    let sample = try Sample(parity: 5)
    var bytes = sample.bytes
    bytes[KeySlots.length + 500] ^= 1
    let file = SimpleStorage(bytes)
    var keys = try SealedKeys(file, sample.owner.ring)
    #expect(throws: ArchiveError.self) { try keys.remove(sample.other.recipient.name) }
    #expect(file.bytes == bytes)
  }

  @Test(arguments: [4, 8, 24])
  func `are not changed where the frame around parity is damaged`(_ offset: Int) throws {
    let sample = try Sample(parity: 5)
    for place in SealedFile.places(sample.bytes)
    where SealedFrame(sample.bytes.span, at: place.lowerBound)?.kind == .parity {
      var bytes = sample.bytes
      bytes[place.lowerBound + offset] ^= 1
      let file = SimpleStorage(bytes)
      var keys = try SealedKeys(file, sample.owner.ring)
      #expect(throws: ArchiveError.self) { try keys.remove(sample.other.recipient.name) }
      #expect(file.bytes == bytes)
    }
  }

  @Test(arguments: [nil, 5])
  func `are the old ones or the new ones when the power fails in a change`(_ parity: Int?) throws {
    var random = SeededGenerator(printing: 0x5ea2_c0b4)
    let sample = try Sample(parity: parity, lengths: [3000, 500])
    let (owner, other) = (sample.owner, sample.other)
    func change(_ file: any ArchiveStorage) throws -> Bool {
      do {
        var keys = try SealedKeys(file, owner.ring)
        try keys.remove(other.recipient.name)
        return true
      } catch is ArchiveError {
        return false
      }
    }
    let whole = MemoryStorage(sample.bytes)
    #expect(try change(whole))
    for number in 1...whole.count(of: disturbed) {
      let conditions = MemoryStorage.Conditions([StorageFault(number, of: disturbed, .forEver)])
      let file = MemoryStorage(sample.bytes, conditions)
      #expect(try !change(file))
      for _ in 0..<8 {
        let left = file.bytes(after: PowerLoss(using: &random))
        #expect(try owner.plain(left) == sample.plain, "before operation \(number)")
        // A writer finishes it.
        let next = SimpleStorage(left)
        _ = try owner.open(next)
        let isRemoved = (try? other.plain(next.bytes)) == nil
        if isRemoved {
          #expect(Sample.places(opening: other.identity, in: next.bytes) == [])
        } else {
          #expect(next.bytes == sample.bytes, "before operation \(number)")
        }
        #expect(try SealedCheck(MappedFile(copying: next.bytes)).flaws == [])
        guard parity != nil else { continue }
        #expect(try LayerParity.assess(MappedFile(copying: next.bytes))?.damagedCount == 0)
      }
    }
  }

  @Test func `of the first version stay so until the keys change or it is protected`() throws {
    var random = SeededGenerator(printing: 0x5ea2_c0b5)
    let owner = try Owner()
    let file = SimpleStorage()
    _ = try owner.create(in: file)
    // As the program before made it.
    var bytes = file.bytes
    for place in [0, KeySlots.slotLength] {
      bytes[place + 28] = 1
      let frame = SealedFrame.withChecksum(Array(bytes[place..<place + KeySlots.slotLength]))
      bytes.replaceSubrange(place..<place + KeySlots.slotLength, with: frame)
    }
    let old = SimpleStorage(bytes)
    let steps = (0..<3).map { _ in BackupStep.one(2000, using: &random) }
    for step in steps { try step.perform(on: owner.open(old)) }
    #expect(Sample.copies(old.bytes) == [0, KeySlots.slotLength])
    let plain = try plainArchive(steps)
    #expect(try owner.plain(old.bytes) == plain)
    #expect(try KeySlots(MappedFile(copying: old.bytes)).version == 1)

    let changed = SimpleStorage(old.bytes)
    var keys = try SealedKeys(changed, owner.ring)
    try keys.add(Owner().recipient)
    #expect(try KeySlots(MappedFile(copying: changed.bytes)).version == 2)
    try BackupStep.one(2000, using: &random).perform(on: owner.open(changed))
    #expect(Sample.copies(changed.bytes).count == 3)

    let protected = SimpleStorage(old.bytes)
    _ = try owner.open(protected).protect(percent: 10)
    #expect(Sample.copies(protected.bytes).count == 3)
    for file in [changed, protected] {
      #expect(try owner.plain(file.bytes).starts(with: plain))
      #expect(try SealedCheck(MappedFile(copying: file.bytes)).flaws == [])
    }
  }

  @Test(arguments: [1, 700, 20_000])
  func `stay with what is theirs when the rest behind the last table is cut off`(_ count: Int)
    throws
  {
    var random = SeededGenerator(printing: 0x5ea2_c0b6)
    for parity in [nil, 5] {
      let sample = try Sample(parity: parity)
      let file = SimpleStorage(sample.bytes + random.bytes(count))
      let storage = try sample.owner.open(file)
      try storage.commit()
      try storage.cutOffRest()
      let isSame = file.bytes == sample.bytes
      #expect(isSame)
    }
  }
}
