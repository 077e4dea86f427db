import Age
import Archive
import ArchiveTestSupport
import TestSupport
import Testing

@testable import Sealing

/// A small archive of three generations, plain and sealed.
private struct Sample {
  let owner: Owner
  let plain, sealed: [UInt8]

  init(_ random: inout SeededGenerator) throws {
    owner = try Owner()
    let steps = (0..<3).map { _ in BackupStep.one(150, using: &random) }
    plain = try plainArchive(steps)
    let file = SimpleStorage()
    _ = try owner.create(in: file)
    for step in steps { try step.perform(on: owner.open(file)) }
    sealed = file.bytes
  }

  /// The bytes that are examined: all that are not zeros, of which key frames have thousands.
  var places: [Int] { sealed.indices.filter { sealed[$0] != 0 || $0 % 16 == 0 } }
}

@Suite struct `A sealed archive that is damaged` {
  @Test func `keeps all pieces in their places when a writer goes on behind a lost one`() throws {
    var random = SeededGenerator(printing: 0x5ea7_1000)
    let owner = try Owner()
    let plain = random.bytes(5000)
    let whole = SealedFile(try owner.sealed(plain, piece: 1000)).withoutTables
    let torn = SealedFile.places(whole.bytes)[1]
    // Some bytes are gone, or the whole of it.
    for lost in [torn.lowerBound + 500..<torn.lowerBound + 700, torn] {
      var bytes = whole.bytes
      bytes.removeSubrange(lost)
      let before = try owner.plain(bytes)
      let file = SimpleStorage(bytes)
      let storage = try owner.open(file)
      let more = random.bytes(700)
      try storage.write(more.span, at: UInt64(before.count))
      try storage.commit()
      #expect(try owner.plain(file.bytes) == before + more)
    }
  }

  @Test(arguments: [true, false])
  func `reads as zeros where a piece is lost, also in memory that held others before`(
    _ hasTables: Bool
  ) throws {
    var random = SeededGenerator(printing: 0x5ea7_2000)
    let owner = try Owner()
    // Chunks do not begin where pages do.
    let (piece, step) = (4_000_003, 16 << 20)
    var plain = random.bytes(7 * step)
    var sealed = SealedFile(try owner.sealed(plain, piece: piece))
    let lost = sealed.numbers(.piece)[25]
    sealed.frames[lost][100_000] ^= 1
    sealed.frames[lost + 1] = sealed.frames[lost + 1].map { _ in 0 }
    let map = try owner.map(hasTables ? sealed.bytes : sealed.withoutTables.bytes)
    // Of the damaged one, only the chunk that does not open.
    let chunk = AgePayload.chunkLength
    for hole in [25 * piece + chunk..<25 * piece + 2 * chunk, 26 * piece..<27 * piece] {
      plain.replaceSubrange(hole, with: repeatElement(0, count: hole.count))
    }
    for start in stride(from: 0, to: plain.count, by: step) {
      map.withBytes(reading: [start..<start + step]) { bytes in
        for place in stride(from: start, to: start + step, by: 4096) {
          let isRight = bytes.extracting(place..<place + 4096).equals(
            plain.span.extracting(place..<place + 4096))
          #expect(isRight, "byte \(place)")
        }
      }
    }
    try map.checkFetched()
  }

  @Test(arguments: [true, false])
  func `is never intact, whichever byte is flipped, and gives back all that is undamaged`(
    _ hasTables: Bool
  ) throws {
    var random = SeededGenerator(printing: 0x5ea7_0000)
    let sample = try Sample(&random)
    let owner = sample.owner
    let whole = SealedFile(sample.sealed)
    let sealed = hasTables ? sample.sealed : whole.withoutTables.bytes
    let places = SealedFile.places(sealed)
    let pieces = try SealedLayout(
      MappedFile(copying: sealed), owner.archiveIdentity(sealed)
    ).pieces
    for place in sample.places where place < sealed.count {
      var bytes = sealed
      bytes[place] ^= 1 << UInt8(random.next() % 8)
      let check = try SealedCheck(MappedFile(copying: bytes))
      #expect(!check.flaws.isEmpty || check.tailCount > 0, "byte \(place) without a key")
      // Every fifth takes long enough.
      guard place % 5 == 0 else { continue }
      #expect(try owner.verification(bytes)?.isIntact != true, "byte \(place)")
      let plain = try owner.plain(bytes)
      let piece = pieces.first { $0.frame.contains(place) }
      let lost = piece?.plain ?? 0..<0
      // The last one that is lost shortens the archive where no table knows of it.
      let isShort = !hasTables && lost.upperBound == sample.plain.count
      try #require(plain.count == sample.plain.count || isShort, "byte \(place)")
      let changed = plain.indices.filter { plain[$0] != sample.plain[$0] }
      #expect(changed.allSatisfy { lost.contains($0) && plain[$0] == 0 }, "byte \(place)")
    }
    #expect(places.count >= 6)
  }

  @Test(arguments: [true, false])
  func `is read whatever is flipped around an age file`(_ hasTables: Bool) throws {
    var random = SeededGenerator(seed: 8)
    let sample = try Sample(&random)
    let owner = sample.owner
    let sealed = hasTables ? sample.sealed : SealedFile(sample.sealed).withoutTables.bytes
    for frame in SealedFile.places(sealed) {
      for place in frame
      where place < frame.lowerBound + 60 || place >= frame.upperBound - 60 {
        for bit in [place % 8, (place + 3) % 8] {
          var bytes = sealed
          bytes[place] ^= 1 << UInt8(bit)
          let plain = try owner.plain(bytes)
          let changed = zip(plain, sample.plain).count { $0 != $1 && $0 != 0 }
          #expect(changed == 0, "bit \(bit) of byte \(place) of a frame at \(frame)")
          let isSame = plain.count == sample.plain.count || !hasTables
          #expect(isSame, "bit \(bit) of byte \(place) of a frame at \(frame)")
        }
      }
    }
  }

  @Test func `is gone on with where it was cut off, and loses nothing that was committed`() throws {
    var random = SeededGenerator(printing: 0x5ea8_0000)
    let sample = try Sample(&random)
    let owner = sample.owner
    let file = SealedFile(sample.sealed)
    var ends: [(file: Int, plain: Int)] = []
    var place = KeySlots.length
    for frame in file.frames {
      place += frame.count
      guard let read = SealedFrame(frame.span, at: 0), read.kind == .table else { continue }
      ends.append((place, Int(read.plainOffset)))
    }
    #expect(ends.last?.file == sample.sealed.count && ends.last?.plain == sample.plain.count)
    for length in stride(from: 0, through: sample.sealed.count, by: 1) {
      // For the key frames, some lengths prove as much as all.
      let isZero = length > 100 && sample.sealed[length - 100..<length].allSatisfy { $0 == 0 }
      guard length >= KeySlots.length - 20 && !isZero || length % 97 == 0 else { continue }
      let bytes = Array(sample.sealed[..<length])
      guard length >= KeySlots.slotLength else {
        #expect(throws: ArchiveError(.unbegunSeal), "\(length) bytes") { try owner.plain(bytes) }
        continue
      }
      let plain = try owner.plain(bytes)
      #expect(sample.plain.starts(with: plain), "\(length) bytes")
      let committed = ends.last { $0.file <= length }?.plain ?? 0
      #expect(plain.count >= committed, "\(length) bytes")
      guard length % 5 == 0 else { continue }
      let storage = SimpleStorage(bytes)
      try BackupStep.one(100, using: &random).perform(on: owner.open(storage))
      let after = try owner.plain(storage.bytes)
      #expect(after.starts(with: sample.plain[..<committed]), "\(length) bytes")
      #expect(try owner.verification(storage.bytes)?.worst == nil, "\(length) bytes")
    }
  }

  @Test(arguments: [nil, 1])
  func `gives back every whole chunk of a piece inside which it ends, and keeps them`(
    _ committedCount: Int?
  ) throws {
    var random = SeededGenerator(printing: 0x5ea8_1000)
    let owner = try Owner()
    let (piece, chunk) = (150_000, AgePayload.chunkLength)
    let plain = random.bytes(2 * piece)
    let sealed = try owner.sealed(plain, piece: piece, committing: committedCount ?? .max)
    let frames = SealedFile.places(sealed).filter {
      SealedFrame(sealed.span, at: $0.lowerBound)?.kind == .piece
    }
    for (number, frame) in frames.enumerated() {
      let payload = frame.upperBound - 8 - AgePayload.sealedLength(of: piece)
      let chunkEnds = (1...2).map { payload + $0 * AgePayload.sealedChunkLength }
      for length in chunkEnds.flatMap({ [$0 - 1, $0, $0 + 7] }) + [frame.upperBound - 8] {
        let count = (length - payload) / AgePayload.sealedChunkLength
        let left = length == frame.upperBound - 8 ? piece : count * chunk
        let expected = Array(plain[..<(number * piece + left)])
        let bytes = Array(sealed[..<length])
        let isRead = try owner.plain(bytes) == expected
        #expect(isRead, "\(length) bytes")
        // The power may fail before each step of the writer that keeps them.
        for fault in 1...7 {
          let file = MemoryStorage(
            bytes, .init([StorageFault(fault, of: [.write, .synchronize, .truncate], .forEver)]))
          do { _ = try owner.open(file) } catch is ArchiveError {}
          let after = file.bytes(after: PowerLoss(using: &random))
          let isKept = try owner.plain(after) == expected
          #expect(isKept, "\(length) bytes, before operation \(fault)")
          let storage = SimpleStorage(after)
          let writer = try owner.open(storage)
          try writer.write(([1, 2, 3] as [UInt8]).span, at: UInt64(left + number * piece))
          try writer.commit()
          let isGoneOnWith = try owner.plain(storage.bytes) == expected + [1, 2, 3]
          #expect(isGoneOnWith, "\(length) bytes, before operation \(fault)")
          #expect(try SealedCheck(MappedFile(copying: storage.bytes)).flaws == [])
        }
      }
    }
  }

  @Test func `is gone on with where a piece is lost among others`() throws {
    var random = SeededGenerator(seed: 3)
    let owner = try Owner()
    let plain = random.bytes(9000)
    for lost in [0..<1, 3..<4, 2..<5] {
      var file = SealedFile(try owner.sealed(plain, piece: 1000)).withoutTables
      for number in lost {
        file.frames[number] = [UInt8](repeating: 9, count: file.frames[number].count)
      }
      // What is lost is left as it is for as long as it can be.
      let storage = SimpleStorage(file.bytes)
      let sealed = try owner.open(storage)
      #expect(storage.bytes == file.bytes)
      for size in [lost.lowerBound * 1000, lost.lowerBound * 1000 + 1, lost.upperBound * 1000 - 1] {
        let cut = SimpleStorage(file.bytes)
        let shorter = try owner.open(cut)
        let before = try shorter.read(size, at: 0)
        try shorter.truncate(to: UInt64(size))
        try shorter.commit()
        #expect(try owner.plain(cut.bytes) == before)
      }
      try sealed.write(plain.span, at: 0)
      try sealed.commit()
      #expect(try owner.plain(storage.bytes) == plain)
      #expect(try SealedCheck(MappedFile(copying: storage.bytes)).flaws == [])
    }
  }

  @Test func `is read behind bytes that were put in or left out`() throws {
    var random = SeededGenerator(seed: 4)
    let owner = try Owner()
    let plain = random.bytes(9000)
    let whole = try owner.sealed(plain, piece: 1000)
    let places = SealedFile.places(whole)
    var more = whole
    more.insert(contentsOf: [1, 2, 3], at: places[2].lowerBound + 300)
    var less = whole
    less.removeSubrange(places[2].lowerBound + 300..<places[2].lowerBound + 340)
    for bytes in [more, less] {
      let read = try owner.plain(bytes)
      #expect(read.count == 9000 && read[..<2000] == plain[..<2000])
      #expect(read[3000...] == plain[3000...])
    }
  }
}
