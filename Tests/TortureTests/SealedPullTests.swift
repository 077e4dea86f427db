import Age
import Archive
import ArchiveTestSupport
import IPLD
import Sealing
import SystemPackage
import TestSupport
import Testing

@testable import Remote

/// A remote sealed archive and a local copy: bringing one up to date takes no key.
@Suite struct `A sealed archive that lies elsewhere` {

  /// A sealed archive of three generations, what was there after each, and the same with another
  /// recipient.
  private struct Sample {
    var states: [[UInt8]] = []
    let readmitted: [UInt8]

    init() throws {
      var random = SeededGenerator(printing: 0x7011_0002)
      let seal = try TestSeal()
      let file = MemoryStorage()
      let sealed = try seal.archive(in: file)
      for _ in 0..<3 {
        var writer = try ArchiveWriter.open(sealed, carHeader: CARHeader(roots: []).bytes)
        for _ in 0..<3 {
          let body = random.bytes(2000)
          try writer.append(.blob(body), body.span)
        }
        try writer.checkpoint()
        states.append(file.bytes)
      }
      var keys = try SealedKeys(file, seal.ring)
      try keys.add(.key(AgeIdentity.generate().recipient))
      readmitted = file.bytes
    }
  }

  private func pull(_ remote: [UInt8], to path: FilePath, replaces: Bool = false) throws
    -> TransferReport.Outcome
  {
    try ArchivePull(from: MemoryServer(bytes: remote), to: path, replaces: replaces).run().outcome
  }

  @Test func `is fetched, and then what was appended`() throws {
    let folder = try TemporaryFolder()
    let sample = try Sample()
    let path = FilePath(folder.path + "/a.car.zst")
    for (number, remote) in sample.states.enumerated() {
      #expect(try pull(remote, to: path) == (number == 0 ? .created : .appended))
      #expect(try folder.read("a.car.zst") == remote)
      #expect(try pull(remote, to: path) == .unchanged)
    }
    #expect(try pull(sample.states[0], to: path) == .ahead)
    #expect(try folder.read("a.car.zst") == sample.states[2])
  }

  @Test func `takes the place of what an interrupted pull has left, wherever that ended`() throws {
    let folder = try TemporaryFolder()
    let sample = try Sample()
    let remote = sample.states[2]
    for count in stride(from: sample.states[0].count, to: remote.count, by: 97) {
      let path = FilePath(try folder.write("a.car.zst", Array(remote[..<count])))
      _ = try pull(remote, to: path)
      #expect(try folder.read("a.car.zst") == remote, "of \(count) bytes")
    }
  }

  @Test func `has its keys fetched again when they have changed`() throws {
    let folder = try TemporaryFolder()
    let sample = try Sample()
    for state in sample.states {
      let path = FilePath(try folder.write("a.car.zst", state))
      _ = try pull(sample.readmitted, to: path)
      #expect(try folder.read("a.car.zst") == sample.readmitted)
    }
  }

  @Test func `takes no change of the keys back, and takes over one that was made there`() throws {
    let folder = try TemporaryFolder()
    let (sample, seal) = (try Sample(), try TestSeal())
    let path = FilePath(try folder.write("a.car.zst", sample.readmitted))
    func run(_ remote: [UInt8]) throws -> TransferReport {
      try ArchivePull(from: MemoryServer(bytes: remote), to: path, replaces: false).run()
    }
    // There is an older copy, then one that is as new.
    for state in sample.states {
      #expect(try run(state).keys == .kept)
      #expect(try folder.read("a.car.zst") == sample.readmitted)
    }
    // One made here goes through what was appended there, and through every key frame of it.
    for state in sample.states.dropLast() {
      let changed = MemoryStorage(state)
      var keys = try SealedKeys(changed, seal.ring)
      try keys.add(.key(AgeIdentity.generate().recipient))
      try folder.write("a.car.zst", changed.bytes)
      let report = try run(sample.states[2])
      #expect(report.outcome == .appended && report.keys == .kept)
      let file = try folder.read("a.car.zst")
      let names = try SealedKeys(MemoryStorage(file), seal.ring).names
      #expect(try names == keys.names)
      #expect(try SealedLayer(seal.ring).flaws(of: MappedFile(copying: file)) == [])
    }
    // One made there while more was appended here.
    let ahead = MemoryStorage(sample.states[1])
    var keys = try SealedKeys(ahead, seal.ring)
    try keys.add(.key(AgeIdentity.generate().recipient))
    try folder.write("a.car.zst", sample.states[2])
    let report = try run(ahead.bytes)
    #expect(report.outcome == .ahead && report.keys == .taken)
    let file = try folder.read("a.car.zst")
    #expect(try SealedKeys(MemoryStorage(file), seal.ring).names == keys.names)
    #expect(file.count == sample.states[2].count)
  }

  @Test func `finishes a change of the keys inside which an earlier pull was interrupted`() throws {
    let folder = try TemporaryFolder()
    let sample = try Sample()
    // The first key frame is the new one, the others are not.
    let half = Array(sample.readmitted[..<8192] + sample.states[2][8192...])
    let path = FilePath(try folder.write("a.car.zst", half))
    #expect(try pull(sample.readmitted, to: path) == .unchanged)
    #expect(try folder.read("a.car.zst") == sample.readmitted)
  }

  @Test func `is refused where it is damaged, and the copy stays as it was`() throws {
    let folder = try TemporaryFolder()
    let sample = try Sample()
    let (before, whole) = (sample.states[0], sample.states[2])
    for place in stride(from: before.count, to: whole.count - 40, by: 61) {
      var remote = whole
      remote[place] ^= 0x10
      let path = FilePath(try folder.write("a.car.zst", before))
      #expect(throws: (any Error).self) { try pull(remote, to: path) }
      #expect(try folder.read("a.car.zst") == before, "damaged at \(place)")
    }
  }

  @Test func `does not cut off what an interrupted backup has left here alone`() throws {
    let folder = try TemporaryFolder()
    let sample = try Sample()
    let own = sample.states[0] + [UInt8](repeating: 7, count: 500)
    let path = FilePath(try folder.write("a.car.zst", own))
    #expect(throws: PushError.self) { try pull(sample.states[2], to: path) }
    #expect(try folder.read("a.car.zst") == own)
    #expect(try pull(sample.states[2], to: path, replaces: true) == .replaced)
    #expect(try folder.read("a.car.zst") == sample.states[2])
  }

  @Test func `is read where the first of its key frames is damaged`() throws {
    let folder = try TemporaryFolder()
    var bytes = try Sample().states[2]
    for place in [0, 4, 10, 24] { bytes[place] ^= 0x55 }
    let path = FilePath(try folder.write("a.car.zst", bytes))
    #expect(try MappedFile(path).layer != nil)
  }

  @Test(arguments: [nil, 5]) func `is known where both of its ends are damaged`(_ parity: Int?)
    throws
  {
    let folder = try TemporaryFolder()
    let file = MemoryStorage(try Sample().states[2])
    let storage = try TestSeal().archive(in: file)
    if let parity { _ = try storage.protect(percent: parity) }
    var bytes = file.bytes + [1, 2, 3]
    for place in 0..<16_384 { bytes[place] = 0 }
    let path = FilePath(try folder.write("a.car.zst", bytes))
    #expect(try MappedFile(path).layer != nil)
    #expect(try MappedFile(path).archive().count > 0)
  }

  @Test func `does not take the place of another, unless that is wanted`() throws {
    let folder = try TemporaryFolder()
    let (sample, other) = (try Sample(), try Sample())
    let path = FilePath(try folder.write("a.car.zst", other.states[1]))
    #expect(throws: PushError.otherObject("\(path)")) { try pull(sample.states[2], to: path) }
    #expect(try folder.read("a.car.zst") == other.states[1])
    #expect(try pull(sample.states[2], to: path, replaces: true) == .replaced)
    #expect(try folder.read("a.car.zst") == sample.states[2])
  }
}
