import ArchiveTestSupport
import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Archive

@Suite struct `An archive writer` {
  private func writer(_ storage: MemoryStorage = MemoryStorage(), workers: Int = 2) throws
    -> ArchiveWriter
  {
    try ArchiveWriter.open(
      storage, carHeader: SampleArchive.header, options: .init(workers: workers))
  }

  private func cid(_ body: [UInt8], _ codec: Codec = .raw) -> CID {
    CID(codec: codec, hashing: body.span)
  }

  private func reason(_ body: () throws -> Void) -> ArchiveError.Reason? {
    do {
      try body()
      return nil
    } catch {
      return (error as? ArchiveError)?.reason
    }
  }

  @Test func `stores each CID once, also when it was written long ago`() throws {
    var random = SeededGenerator(printing: 0xd0d0)
    let storage = MemoryStorage()
    var writer = try writer(storage)
    let bodies = (0..<30_000).map { _ in random.text(40 + Int(random.next() % 1000)) }
    let large = [random.bytes(70_000), random.text(5_000_000)]
    var ordinals: [CID: UInt64] = [:]
    for body in bodies + large {
      let cid = cid(body)
      let ordinal = try writer.append(cid, body.span)
      if let known = ordinals[cid], known != ordinal { Issue.record("\(cid) is stored twice") }
      ordinals[cid] = ordinal
    }
    #expect(writer.sectionCount == UInt64(ordinals.count))
    let before = writer.bytesWritten
    // Again, in an order that jumps through the file, so that sections are read back.
    for index in stride(from: 0, to: bodies.count, by: 97) {
      let body = bodies[index]
      let again = try writer.append(cid(body), body.span)
      if again != ordinals[cid(body)] { Issue.record("\(index) is stored again as \(again)") }
    }
    for body in large { #expect(try writer.ordinal(of: cid(body)) == ordinals[cid(body)]) }
    #expect(try writer.ordinal(of: cid([1, 2, 3])) == nil)
    #expect(writer.bytesWritten == before)
    let generation = try writer.commit(manifest: nil)
    #expect(generation.sectionCount == UInt64(ordinals.count))
  }

  @Test func `refuses bytes that are not those the CID names, and stays as it was`() throws {
    var random = SeededGenerator(printing: 0xbad)
    for size in [0, 10, 65_535, 65_536, 4 << 20, 9_000_000] {
      let storage = MemoryStorage()
      var writer = try writer(storage)
      let first = random.text(100)
      try writer.append(cid(first), first.span)
      try writer.flush()
      let before = storage.bytes
      let body = random.bytes(size)
      let wrong = cid(body + [1])
      #expect(reason { try writer.append(wrong, body.span) } == .contentMismatch(wrong))
      func stream(_ writer: inout ArchiveWriter, _ cid: CID, length: Int) throws {
        var rest = body[...]
        try writer.append(cid, length: UInt64(length)) { piece in
          piece += rest.prefix(100_000)
          rest = rest.dropFirst(100_000)
        }
      }
      #expect(reason { try stream(&writer, wrong, length: size) } == .contentMismatch(wrong))
      let right = cid(body)
      let short = reason { try stream(&writer, right, length: size + 1) }
      #expect(short == .lengthMismatch(right, announced: UInt64(size + 1), received: UInt64(size)))
      if size > 0 {
        guard case .lengthMismatch = reason({ try stream(&writer, right, length: size - 1) }) else {
          Issue.record("\(size) bytes pass as one less")
          continue
        }
      }
      #expect(storage.bytes == before)
      #expect(writer.sectionCount == 1)
      try stream(&writer, right, length: size)
      let generation = try writer.commit(manifest: nil)
      #expect(generation.sectionCount == 2)
    }
  }

  @Test func `forgets a body whose source fails`() throws {
    struct SourceFailure: Error {}
    var random = SeededGenerator(printing: 0xfa11)
    let body = random.bytes(10_000_000)
    let storage = MemoryStorage()
    var writer = try writer(storage)
    let before = storage.bytes
    var calls = 0
    do {
      try writer.append(cid(body), length: UInt64(body.count)) { piece in
        calls += 1
        if calls == 6 { throw SourceFailure() }
        piece += body[(calls * 1_000_000)...].prefix(1_000_000)
      }
      Issue.record("the failure was swallowed")
    } catch is SourceFailure {}
    #expect(storage.bytes == before)
    // The same body may come again, in pieces that the caller pushes.
    #expect(try writer.begin(cid(body), length: UInt64(body.count)) == nil)
    #expect(reason { try writer.append(cid([1]), [1].span) } == .sectionOpen)
    try writer.take(body.span.extracting(first: 5_000_000))
    try writer.cancel()
    #expect(storage.bytes == before)
    #expect(reason { try writer.finish() } == .noSectionOpen)
    #expect(try writer.begin(cid(body), length: UInt64(body.count)) == nil)
    try writer.take(body.span)
    #expect(try writer.finish() == 0)
    #expect(try writer.begin(cid(body), length: UInt64(body.count)) == 0)
    #expect(try writer.append(cid(body), body.span) == 0)
    _ = try writer.commit(manifest: nil)
  }

  @Test func `keeps equal bytes under different CIDs, and whatever nobody can verify`() throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0xa11a5)
    let body = random.bytes(500)
    let digest = SHA256.digest(of: body.span)
    let unknown = Multihash(function: HashFunction(rawValue: 0x1e), digest: random.bytes(32))
    let truncated = Multihash(function: .sha256, digest: Array(digest.bytes.prefix(20)))
    var sections: [(CID, [UInt8])] = [
      (CID(codec: .raw, digest: digest), body), (CID(codec: .dagCBOR, digest: digest), body),
      (CID(codec: .dagPB, digest: digest), body),
      (try CID(([0x12, 0x20] + digest.bytes).span), body),
      (CID(codec: .raw, multihash: unknown), body), (CID(codec: .dagCBOR, multihash: unknown), [1]),
      (CID(codec: .raw, multihash: truncated), body),
    ]
    for length in [0, 1, 36, 2048] {
      let bytes = random.bytes(length)
      sections.append(
        (CID(codec: .raw, multihash: Multihash(function: .identity, digest: bytes)), bytes))
    }
    // Large ones, too; of the longest CID there is, whose digest is the magic over and over.
    let large = random.bytes(9_000_000)
    let digestOfMagic = Array(repeatElement(ArchiveMagic.bytes, count: 128).joined())
    sections.append(
      (
        CID(
          codec: Codec(rawValue: 1 << 62),
          multihash: Multihash(function: HashFunction(rawValue: 1 << 62), digest: digestOfMagic)),
        large
      ))
    sections.append((CID(codec: .raw, hashing: large.span), large))
    let sample = try SampleArchive(in: folder, sections: sections, manifest: random.text(20))
    let reader = try ArchiveReader(path: sample.path)
    for (ordinal, (cid, body)) in sample.sections.enumerated() {
      #expect(try reader.ordinal(of: cid) == UInt64(ordinal))
      let stored = try reader.body(of: cid)
      #expect(stored == body)
    }
    // The same key, and not there.
    #expect(try reader.ordinal(of: CID(codec: Codec(rawValue: 0x0200), digest: digest)) == nil)
    let found = try reader.verify()
    #expect(found.isIntact && found.worst == .unverifiable)
    #expect(found.unverifiableCount == 4)
    #expect(try ZstdProgram.decompress(sample.path.string) == sample.stream)
  }

  @Test func `refuses to keep one block under any number of CIDs`() throws {
    var writer = try writer()
    let body: [UInt8] = [1, 2, 3]
    let digest = SHA256.digest(of: body.span)
    var refused: ArchiveError.Reason?
    var count = 0
    while refused == nil, count < 1000 {
      let cid = CID(codec: Codec(rawValue: UInt64(count)), digest: digest)
      refused = reason { try writer.append(cid, body.span) }
      count += 1
    }
    #expect(count == 257)
    #expect(refused == .tooManyAliases(CID(codec: Codec(rawValue: 256), digest: digest)))
  }

  @Test func `puts the manifest in a frame of its own, or refuses it`() throws {
    let manifest = Array("a manifest".utf8)
    let head = cid(manifest, .dagCBOR)
    let other = cid([7])

    var early = try writer()
    try early.append(head, manifest.span)
    try early.append(other, [7].span)
    #expect(throws: ArchiveError(.manifestNotAlone(head))) { try commit(&early, head) }

    var absent = try writer()
    #expect(throws: ArchiveError(.unknownManifest(head))) { try commit(&absent, head) }

    var raw = try writer()
    try raw.append(other, [7].span)
    let short = CID(codec: .raw, multihash: Multihash(function: .identity, digest: [7]))
    try raw.append(short, [7].span)
    #expect(throws: ArchiveError(.notAManifest(short))) { try commit(&raw, short) }

    for before in 0..<3 {
      var writer = try writer()
      for index in 0..<before { try writer.append(cid([UInt8(index)]), [UInt8(index)].span) }
      try writer.append(head, manifest.span)
      let generation = try commit(&writer, head)
      #expect(generation.head?.ordinal == UInt64(before))
    }
  }

  private func commit(_ writer: inout ArchiveWriter, _ head: CID?) throws -> Generation {
    var taken = try self.writer()
    swap(&taken, &writer)
    return try taken.commit(manifest: head)
  }

  @Test func `refuses a header that is not one, and a file that is something else`() throws {
    let folder = try TemporaryFolder()
    let path = FilePath(folder.file("a"))
    for header: [UInt8] in [[], [0], [1], [2, 0xa0], [1, 0xa0, 0], [0x81, 0x00, 0xa0], [0x80]] {
      #expect(throws: ArchiveError(.malformedHeader)) {
        _ = try ArchiveWriter.open(MemoryStorage(), carHeader: header)
      }
    }
    let storage = try FileStorage.create(path)
    #expect(throws: ArchiveError(.alreadyExists(path.string))) { try FileStorage.create(path) }
    #expect(throws: ArchiveError(.locked)) { try FileStorage.open(path) }
    try storage.write([1, 2, 3].span, at: 0)
    #expect(throws: ArchiveError(.notAnArchive)) {
      _ = try ArchiveWriter.open(storage, carHeader: SampleArchive.header)
    }
  }

  @Test func `leaves a tail that readers recover when it is dropped`() throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0xd209)
    let path = FilePath(folder.file("dropped"))
    let bodies = (0..<20).map { _ in random.text(2000) } + [random.bytes(100_000)]
    do {
      var writer = try ArchiveWriter.open(
        try FileStorage.create(path), carHeader: SampleArchive.header)
      for body in bodies { try writer.append(cid(body), body.span) }
      try writer.flush()
    }
    let reader = try ArchiveReader(path: path)
    #expect(reader.generation.number == 0)
    #expect(reader.recovery == Recovery(interruptedTail: 0, rebuild: .noFooter))
    for body in bodies { #expect(try reader.body(of: cid(body)) == body) }
    #expect(try !reader.verify().isIntact)
  }

  @Test func `writes nothing more after a write that failed`() throws {
    var random = SeededGenerator(printing: 0xf011)
    let bodies =
      (0..<40).map { _ in random.bytes(100_000) } + (0..<20).map { _ in random.text(300) }
    let whole = MemoryStorage()
    var complete = try writer(whole)
    for body in bodies { try complete.append(cid(body), body.span) }
    _ = try complete.commit(manifest: nil)
    // The file has room for so much; what comes after the failure is refused, and no footer is ever
    // written.
    for capacity in stride(from: 472, to: whole.bytes.count - 1, by: 50_021) {
      let storage = MemoryStorage([], .init(capacity: UInt64(capacity)))
      do {
        var writer = try writer(storage)
        for body in bodies {
          do {
            try writer.append(cid(body), body.span)
          } catch let error as ArchiveError {
            #expect(error.reason == .system(operation: "write", code: 28))
          }
        }
        storage.conditions.capacity = .max
        _ = try writer.commit(manifest: nil)
        // Only if nothing failed before: what is cut off of a large section lets the writer
        // continue.
        let bytes = storage.bytes
        if Footer.frame(bytes.span, endingAt: bytes.count) == nil {
          Issue.record("capacity \(capacity): committed without a footer")
        }
      } catch let error as ArchiveError {
        guard case .writerFailed = error.reason else { throw error }
      }
    }
  }

  @Test func `says when it is not known whether a generation is committed`() throws {
    for (failing, expected) in [
      // The first is that of the header.
      (2, ArchiveError.Reason.system(operation: "synchronize", code: 5)),
      (3, .commitUncertain(code: 5)),
    ] {
      let fault = StorageFault(failing, of: [.synchronize])
      let storage = MemoryStorage([], .init([fault]))
      var writer = try writer(storage)
      try writer.append(cid([1]), [1].span)
      #expect(throws: ArchiveError(expected)) { try commit(&writer, nil) }
    }
  }

  @Test func `commits an archive without sections`() throws {
    let folder = try TemporaryFolder()
    let sample = try SampleArchive(in: folder, bodies: [])
    let reader = try ArchiveReader(path: sample.path)
    #expect(reader.generation.sectionCount == 0 && reader.generation.segments == [])
    #expect(try reader.carHeader == sample.header)
    #expect(try reader.ordinal(of: cid([1])) == nil)
    #expect(throws: ArchiveError(.unknownOrdinal(0))) { try reader.section(at: 0) }
    #expect(try reader.verify().findings == [])
    #expect(try ZstdProgram.decompress(sample.path.string) == sample.header)
  }
}
