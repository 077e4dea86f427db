import Archive
import IPLD
import SystemPackage
import TestSupport
import Testing

/// An archive of all kinds of frames, small enough to damage every byte of it.
struct FragileArchive {
  let folder: TemporaryFolder
  let path: FilePath
  let bytes: [UInt8]
  let generation: Generation
  /// Every section, and where its frames lie.
  private(set) var sections: [(cid: CID, body: [UInt8], frames: Range<Int>)] = []

  init(in folder: TemporaryFolder, name: String) throws {
    self.folder = folder
    path = FilePath(folder.file(name))
    var random = SeededGenerator(printing: 0xdead_0001)
    var bodies: [(CID, [UInt8])] = []
    func add(_ body: [UInt8], _ codec: Codec = .dagCBOR, to writer: inout ArchiveWriter) throws {
      let cid = CID(codec: codec, hashing: body.span)
      try writer.append(cid, body.span)
      bodies.append((cid, body))
    }
    var writer = try ArchiveWriter.open(
      try FileStorage.create(path), carHeader: SampleArchive.header)
    for _ in 0..<12 { try add(random.text(300), to: &writer) }
    try writer.flush()
    for _ in 0..<3 { try add(random.bytes(1000), .raw, to: &writer) }
    try writer.flush()
    for _ in 0..<6 { try add(random.text(200), to: &writer) }
    try add([], to: &writer)
    try writer.flush()
    try add(random.text(70_000), .raw, to: &writer)
    try add(ArchiveMagic.bytes + random.bytes(40) + ArchiveMagic.bytes, .raw, to: &writer)
    let manifest = random.text(180)
    try add(manifest, to: &writer)
    generation = try writer.commit(manifest: CID(codec: .dagCBOR, hashing: manifest.span))
    let file = try MappedFile(path)
    bytes = file.withBytes { $0.array }
    print("\(bytes.count) bytes, \(bodies.count) sections")
    try file.withBytes { (file) throws in
      let index = try ArchiveIndex(generation, in: file)
      for (ordinal, (cid, body)) in bodies.enumerated() {
        guard let entry = index.row(of: UInt64(ordinal), in: file)?.entry else { continue }
        sections.append((cid, body, Int(entry.offset)..<Int(entry.end)))
      }
    }
  }

  /// Reads every section; one whose frames `isWhole` must come back, and another come back right or
  /// not at all.
  func check(_ reader: ArchiveReader, _ what: String, isWhole: (Range<Int>) -> Bool) {
    for (cid, body, frames) in sections {
      do {
        let stored = try reader.body(of: cid)
        if stored != body, stored != nil || isWhole(frames) {
          Issue.record("\(what): \(cid) comes back as \(stored?.count ?? -1) other bytes")
        }
      } catch {
        if isWhole(frames) { Issue.record("\(what): \(cid): \(error)") }
      }
    }
  }
}

@Suite struct `A damaged archive` {
  @Test
  func `is never verified, and gives back all that is not damaged, whichever byte is inverted`()
    throws
  {
    let folder = try TemporaryFolder()
    let archive = try FragileArchive(in: folder, name: "inverted.car.zst")
    let intact = try ArchiveReader(path: archive.path).verify()
    #expect(intact.findings == [] && intact.isIntact)
    #expect(intact.sectionCount == UInt64(archive.sections.count))
    let file = try FileDescriptor.open(archive.path, .readWrite)
    defer { try? file.close() }
    // All of them take minutes: every third, each time from another one.
    var random = SeededGenerator(printing: UInt64.random(in: 0 ... .max))
    let first = Int.random(in: 0..<3, using: &random)
    for place in stride(from: first, to: archive.bytes.count, by: 3) {
      try file.writeAll(toAbsoluteOffset: Int64(place), [~archive.bytes[place]])
      defer {
        _ = try? file.writeAll(toAbsoluteOffset: Int64(place), [archive.bytes[place]])
      }
      let reader = try ArchiveReader(path: archive.path)
      let found = try reader.verify(workers: 1)
      if found.isIntact || found.worst == nil {
        Issue.record("byte \(place) inverted, and the archive is said to be fine")
      }
      let quick = try reader.verify(.quick, workers: 1)
      if quick.isIntact { Issue.record("byte \(place) inverted, and the quick look sees nothing") }
      let fresh = try ArchiveReader(path: archive.path)
      archive.check(fresh, "byte \(place) inverted") { !$0.contains(place) }
      // A section that is nowhere must not make the reader stumble either.
      if try fresh.ordinal(of: CID(codec: .raw, hashing: [1, 2, 3].span)) != nil {
        Issue.record("byte \(place) inverted, and a section is found that is not there")
      }
    }
  }

  @Test func `gives back every whole frame, wherever it is cut off`() throws {
    let folder = try TemporaryFolder()
    let archive = try FragileArchive(in: folder, name: "cut.car.zst")
    let file = try FileDescriptor.open(archive.path, .readWrite)
    defer { try? file.close() }
    // Behind frame 0 stands the note.
    let firstFrame = try #require(archive.sections.map(\.frames.lowerBound).min())
    let beginning = firstFrame - ArchiveNote.frame.count
    for length in archive.bytes.indices.reversed() {
      try file.resize(to: Int64(length))
      do {
        let reader = try ArchiveReader(path: archive.path)
        if length < beginning { Issue.record("\(length) bytes are taken for an archive") }
        let found = try reader.verify(workers: 1)
        if found.isIntact { Issue.record("cut at \(length), and the archive is said to be fine") }
        archive.check(reader, "cut at \(length)") { $0.upperBound <= length }
      } catch let error as ArchiveError {
        if error.reason != .notAnArchive || length >= beginning {
          Issue.record("cut at \(length): \(error)")
        }
      }
    }
  }
}
