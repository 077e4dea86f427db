import Archive
import ArchiveTestSupport
import Foundation
import IPLD
import SystemPackage
import TestSupport
import Testing

@Suite struct `An archive that is appended to` {
  @Test func `grows at its end only, and stores nothing twice`() throws {
    var random = SeededGenerator(printing: 0xa9e4d)
    let archive = AppendedArchive()
    let first = (0..<3000).map { _ in random.text(300) } + [random.bytes(9_000_000)]
    try archive.append(first)
    let before = archive.storage.bytes
    try archive.append(first)
    let repeated = archive.storage.bytes
    #expect(repeated.starts(with: before))
    // A manifest, a segment of one entry and a footer.
    #expect(repeated.count - before.count < 700)
    try archive.append((0..<1000).map { _ in random.text(400) } + first)
    #expect(archive.storage.bytes.starts(with: repeated))
    #expect(archive.generations.map(\.number) == [1, 2, 3])
    #expect(archive.generations[2].previousFooterOffset == archive.generations[1].footerOffset)
    try archive.check()
    let folder = try TemporaryFolder()
    let file = folder.file("a.car.zst")
    try Data(archive.storage.bytes).write(to: URL(filePath: file))
    #expect(try ZstdProgram.accepts(file))
  }

  @Test func `keeps its index small by merging segments, which gives what building gives`() throws {
    var random = SeededGenerator(printing: 0x3e9)
    let archive = AppendedArchive()
    try archive.append((0..<5000).map { _ in random.text(60) })
    for round in 0..<200 {
      try archive.append((0..<Int(random.next() % 12)).map { _ in random.text(60) })
      #expect(archive.generations[round + 1].segments.count <= 12)
    }
    // The verifier makes every live segment again from the frames.
    try archive.check()
    // Most of what is in the index was written a few times only.
    let written = archive.generations.flatMap(\.segments).reduce(into: [UInt64: UInt64]()) {
      $0[$1.offset] = UInt64($1.sectionCount)
    }.values.reduce(0, +)
    #expect(written < 5000 + 5 * (archive.generations[200].sectionCount - 5000) + 5000)
  }

  @Test func `is made to count every so often while it grows`() throws {
    var random = SeededGenerator(printing: 0xc4ec)
    let archive = AppendedArchive()
    var options = ArchiveOptions()
    options.checkpointLength = 3 << 20
    try archive.append([random.text(100)])
    let head = archive.generations[0].head
    var writer = try archive.open(options)
    var heads: [Generation.Head?] = []
    for _ in 0..<40 {
      let body = random.bytes(300_000)
      let cid = CID(codec: .raw, hashing: body.span)
      try writer.append(cid, body.span)
      archive.bodies[cid] = body
      if writer.generation?.number ?? 0 > UInt64(heads.count + 1) {
        heads.append(writer.generation?.head)
      }
    }
    #expect(heads.count >= 3 && heads.allSatisfy { $0 == head })
    let generation = try writer.commit(manifest: nil)
    #expect(generation.number == UInt64(heads.count + 2))
    try archive.check()
  }

  @Test func `takes over the whole sections of an interrupted write, and no others`() throws {
    var random = SeededGenerator(printing: 0xad09)
    let archive = AppendedArchive()
    try archive.append((0..<20).map { _ in random.text(200) })
    let committed = archive.storage.bytes
    let tail = (0..<3).flatMap { _ in
      (0..<500).map { _ in random.text(200) } + [random.bytes(100_000), random.bytes(5_000_000)]
    }
    do {
      var writer = try archive.open()
      for body in tail { try writer.append(CID(codec: .raw, hashing: body.span), body.span) }
      try writer.flush()
    }
    let interrupted = archive.storage.bytes
    var last = UInt64.max
    for cut in stride(from: interrupted.count, to: committed.count, by: -1_034_567) {
      archive.storage.bytes = Array(interrupted[..<cut])
      let adopted: UInt64
      do {
        let writer = try archive.open()
        adopted = writer.adoptedSectionCount
      }
      #expect(adopted <= last)
      if cut == interrupted.count { #expect(adopted == UInt64(tail.count)) }
      last = adopted
      let again = archive.storage.bytes
      // What was taken over counts from now on: an index and a footer stand after it.
      let end = Int(try archive.reader().generation.segments.last?.offset ?? 0)
      #expect(interrupted.starts(with: again[..<end]) && end <= max(cut, committed.count))
      #expect(try archive.reader().generation.head == archive.generations.last?.head)
      // The rest is written, and nothing of what was taken over.
      let other = AppendedArchive()
      other.storage.bytes = again
      other.generations = archive.generations
      other.bodies = archive.bodies
      try other.append(tail)
      #expect(other.storage.bytes.starts(with: again))
      try other.check("cut at \(cut)")
    }
    #expect(last < 510)
    // A byte that is wrong costs the frame that it is in, and nothing after it.
    for _ in 0..<20 {
      let place = committed.count + Int(random.next() % UInt64(interrupted.count - committed.count))
      var damaged = interrupted
      damaged[place] ^= 0x10
      archive.storage.bytes = damaged
      let writer = try archive.open()
      #expect(
        writer.adoptedSectionCount > 800 || tail.count - Int(writer.adoptedSectionCount) < 600)
      let reader = try archive.reader()
      #expect(try reader.verify(workers: 1).isIntact)
      var held = 0
      for body in tail {
        let cid = CID(codec: .raw, hashing: body.span)
        if try reader.body(of: cid) == body { held += 1 }
      }
      #expect(held == Int(writer.adoptedSectionCount))
    }
  }

  @Test func `takes over the whole sections of a frame that is torn`() throws {
    var random = SeededGenerator(printing: 0xad10)
    let archive = AppendedArchive()
    try archive.append((0..<20).map { _ in random.text(200) })
    let committed = archive.storage.bytes
    // One frame of seven blocks.
    let bodies = (0..<40).map { _ in random.bytes(20_000) }
    do {
      var writer = try archive.open()
      for body in bodies { try writer.append(CID(codec: .raw, hashing: body.span), body.span) }
      try writer.flush()
    }
    let whole = archive.storage.bytes
    for cut in stride(from: committed.count, to: whole.count, by: 50_021) {
      archive.storage.bytes = Array(whole[..<cut])
      let adopted = try archive.open().adoptedSectionCount
      let blocks = (cut - committed.count) / (DataFrame.blockContent + 3)
      #expect(adopted >= blocks * DataFrame.blockContent / 20_050, "cut at \(cut)")
      let reader = try archive.reader()
      #expect(try reader.verify(workers: 1).isIntact)
      #expect(reader.generation.head == archive.generations.last?.head)
      for (number, body) in bodies.enumerated() {
        let found = try reader.body(of: CID(codec: .raw, hashing: body.span))
        #expect((found != nil) == (number < Int(adopted)), "\(number), cut at \(cut)")
        if let found { #expect(found.elementsEqual(body)) }
      }
    }
  }

  @Test func `takes over what a frame has besides what is in the archive`() throws {
    var random = SeededGenerator(printing: 0xad0f)
    let archive = AppendedArchive()
    let bodies = (0..<30).map { _ in random.text(200) }
    let first = try archive.append(bodies)
    let older = archive.storage.bytes
    // The frame is lost with all of its sections, and some of them are appended again.
    let end = try #require(first.head).frameOffset
    archive.storage.bytes.replaceSubrange(
      Int(end) - 1000..<Int(end), with: repeatElement(0, count: 1000))
    try archive.append(Array(bodies[..<10]))
    archive.storage.bytes += older
    _ = try ArchiveRepair.run(archive.storage)
    let reader = try archive.reader()
    for body in bodies {
      #expect(try reader.body(of: CID(codec: .raw, hashing: body.span)) == body)
    }
  }

  @Test func `is given the footer that a whole generation lacks`() throws {
    var random = SeededGenerator(printing: 0xf007)
    let archive = AppendedArchive()
    try archive.append((0..<50).map { _ in random.text(200) })
    let old = archive.storage.bytes
    let generation = try archive.append((0..<50).map { _ in random.text(200) })
    let new = archive.storage.bytes
    let footer = Int(generation.footerOffset)
    // Cut anywhere within the footer, or torn, or with a bit changed.
    var states = (footer..<new.count).map { Array(new[..<$0]) }
    for place in stride(from: footer, to: new.count, by: 7) {
      var torn = new
      torn.replaceSubrange(place..., with: repeatElement(0, count: new.count - place))
      states.append(torn)
      var flipped = new
      flipped[place] ^= 1
      states.append(flipped)
    }
    for state in states where state != new {
      archive.storage.bytes = state
      let writer = try archive.open()
      #expect(writer.generation == generation)
      #expect(archive.storage.bytes == new)
    }
    // Also without an index; without a whole manifest, the sections count anyway.
    let manifest = try #require(generation.head)
    let segment = try #require(generation.segments.last)
    for end in stride(from: Int(manifest.frameOffset), to: footer, by: 5) {
      archive.storage.bytes = Array(new[..<end])
      let writer = try archive.open()
      if end >= Int(segment.offset) {
        #expect(writer.generation == generation)
        #expect(archive.storage.bytes == new)
      } else {
        #expect(writer.generation?.number == 2)
        #expect(writer.generation?.head == archive.generations[0].head)
        // Where the manifest counts, at most a part of its checksum is missing.
        #expect([50, 51].contains(writer.adoptedSectionCount))
      }
    }
    archive.storage.bytes = old + random.bytes(1000)
    _ = try archive.open()
    #expect(archive.storage.bytes == old)
  }

  @Test func `is given back the newest manifest, also if a generation has several`() throws {
    var random = SeededGenerator(printing: 0xf00a)
    let archive = AppendedArchive()
    var last: CID?
    /// Appends manifests that follow one another, and after them another section.
    func append(_ numbers: Range<Int>, after previous: CID?, newest: Int) throws -> Generation {
      var writer = try archive.open()
      var heads: [CID] = []
      for number in numbers {
        let (cid, bytes) = try manifest(number, after: heads.last ?? previous)
        try writer.append(cid, bytes.span)
        try writer.flush()
        heads.append(cid)
      }
      last = heads[newest]
      return try writer.commit(manifest: last)
    }
    // As copying does: the first generation has all of them. As forgetting does: the chain begins
    // again.
    for (numbers, previous) in [(0..<3, CID?.none), (10..<13, nil), (20..<22, last)] {
      let generation = try append(numbers, after: previous, newest: numbers.count - 1)
      #expect(generation.head?.cid == last)
      let whole = archive.storage.bytes
      for place in Int(generation.footerOffset)..<whole.count {
        var damaged = whole
        damaged[place] ^= UInt8.random(in: 1...255, using: &random)
        archive.storage.bytes = damaged
        #expect(try archive.open().generation == generation)
        #expect(archive.storage.bytes == whole)
        archive.storage.bytes = damaged
        _ = try ArchiveRepair.run(archive.storage)
        #expect(archive.storage.bytes == whole)
      }
      guard generation.number == 1 else { continue }
      // In the first generation they are found without it.
      let cut = Array(whole[..<Int(generation.footerOffset)])
      archive.storage.bytes = cut
      #expect(try archive.open().generation == generation)
      archive.storage.bytes = cut
      _ = try ArchiveRepair.run(archive.storage)
      #expect(archive.storage.bytes == whole)
    }
  }

  @Test func `is never given less than it had, if more than a footer is damaged`() throws {
    var random = SeededGenerator(printing: 0xf008)
    let archive = AppendedArchive()
    try archive.append((0..<20).map { _ in random.text(200) })
    let generation = try archive.append((0..<20).map { _ in random.text(200) })
    let whole = archive.storage.bytes
    let segment = Int(try #require(generation.segments.last).offset)
    let footer = Int(generation.footerOffset)
    for place in footer..<whole.count {
      // The index, which would say that all of it is there, and a byte of the footer.
      var damaged = whole
      damaged[segment + 60] ^= 1
      damaged[place] ^= 0x10
      archive.storage.bytes = damaged
      let reader = try ArchiveReader(archive.storage.map())
      #expect(reader.generation.number == 1)
      // It looks like a write that was not finished.
      #expect(try reader.verify().worst == .interruptedTail)
      #expect(try archive.open().generation == generation)
      #expect(archive.storage.bytes == whole)
      archive.storage.bytes = damaged
      _ = try ArchiveRepair.run(archive.storage)
      #expect(archive.storage.bytes == whole)
      // With a frame damaged as well, a writer leaves it to repairing.
      damaged[Int(archive.generations[0].committedLength) + 30] ^= 1
      archive.storage.bytes = damaged
      #expect(throws: (any Error).self) { _ = try archive.open() }
      #expect(archive.storage.bytes == damaged)
    }
    // A file that has not been announced is begun again anyway.
    var damaged = whole
    damaged[segment + 60] ^= 1
    damaged[footer + 60] ^= 1
    archive.storage.bytes = damaged
    var options = ArchiveOptions()
    options.startsOver = true
    #expect(try archive.open(options).generation == generation)
  }

  @Test func `says so if the footer that it is given may not last`() throws {
    var random = SeededGenerator(printing: 0xf009)
    let archive = AppendedArchive()
    let generation = try archive.append((0..<20).map { _ in random.text(200) })
    let whole = archive.storage.bytes
    let storage = MemoryStorage(
      Array(whole[..<Int(generation.footerOffset)]),
      .init([StorageFault(3, of: [.synchronize])]))
    #expect(throws: ArchiveError(.commitUncertain(code: StorageFault.inputOutput))) {
      _ = try ArchiveWriter.open(storage, carHeader: SampleArchive.header)
    }
    #expect(storage.bytes == whole)
  }

  @Test func `goes on where the very first write was interrupted, if it is the same one`() throws {
    var random = SeededGenerator(printing: 0x1f1)
    let archive = AppendedArchive()
    let bodies = (0..<5000).map { _ in random.text(300) }
    do {
      var writer = try archive.open()
      for body in bodies { try writer.append(CID(codec: .raw, hashing: body.span), body.span) }
      try writer.flush()
    }
    #expect(throws: ArchiveError(.begunOtherwise)) {
      _ = try ArchiveWriter.open(archive.storage, carHeader: [1, 0xa0])
    }
    do {
      let writer = try archive.open()
      #expect(writer.adoptedSectionCount == 5000 && writer.generation?.head == nil)
    }
    try archive.append(bodies)
    try archive.check()
  }

  @Test func `is left alone while its index is damaged`() throws {
    var random = SeededGenerator(printing: 0xda4)
    let archive = AppendedArchive()
    let generation = try archive.append((0..<50).map { _ in random.text(200) })
    let offset = generation.segments[0].offset
    archive.storage.bytes[Int(offset) + 60] ^= 1
    let before = archive.storage.bytes
    #expect(throws: (any Error).self) { try archive.append([[1]]) }
    #expect(archive.storage.bytes == before)
  }

  @Test func `notices that it was cut off or replaced while it was written to`() throws {
    let folder = try TemporaryFolder()
    let path = FilePath(folder.file("a.car.zst"))
    var random = SeededGenerator(printing: 0x3e91)
    _ = try SampleArchive(in: folder, name: "a.car.zst", bodies: [random.bytes(500)])
    for isReplaced in [true, false] {
      var writer = try ArchiveWriter.open(
        FileStorage.open(path), carHeader: SampleArchive.header)
      let body = random.bytes(90_000)
      try writer.append(CID(codec: .raw, hashing: body.span), body.span)
      if isReplaced {
        try FileManager.default.moveItem(atPath: path.string, toPath: folder.file("b.car.zst"))
        try FileManager.default.copyItem(atPath: folder.file("b.car.zst"), toPath: path.string)
      } else {
        try FileDescriptor.open(path, .writeOnly).closeAfter { try $0.resize(to: 100) }
      }
      do {
        _ = try writer.commit(manifest: nil)
        Issue.record("it was committed")
      } catch {
        #expect(error as? ArchiveError == ArchiveError(.changedMeanwhile))
      }
    }
  }
}

extension FileDescriptor {
  fileprivate func closeAfter(_ body: (FileDescriptor) throws -> Void) throws {
    defer { try? close() }
    try body(self)
  }
}
