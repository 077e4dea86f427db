import FuzzSupport
import IPLD
import SystemPackage

@testable import Archive

/// Archives: whatever a file holds, it opens or is refused, is verified to its end, and gives out
/// nothing that is not what its CID says; and a file that verifies reads.
///
/// The first byte of the input says which checksums are made to hold, the rest is the file.
enum FuzzFrameWalk: Fuzzer {
  /// How many sections are read one by one.
  private static let maximumReads: UInt64 = 64
  /// How much is read in a stream: frames of zeros make much of little.
  private static let maximumStream = 6 << 20

  private static let path = File.scratch("archive")

  /// Ends a stream that continues for too long.
  private struct Enough: Error {}

  static func run(_ bytes: Span<UInt8>) {
    guard bytes.count > 0 else { return }
    var file = bytes.extracting(droppingFirst: 1).copy
    guard isWorthWhile(file.span) else { return }
    ArchiveRepair(rawValue: bytes[0]).apply(to: &file)
    do {
      try File.write(file.span, to: path)
    } catch {
      fatalError("no file could be written: \(error)")
    }
    let reader: ArchiveReader
    do {
      reader = try ArchiveReader(path: path)
    } catch {
      require(error is ArchiveError, "another error: \(error)")
      return
    }
    let full = verify(reader, .full)
    require(
      !full.isIntact || reader.recovery?.rebuild == nil, "an index was rebuilt and all is well")
    let quick = verify(reader, .quick)
    require(!full.isIntact || quick.isIntact, "a quick look finds what a full one does not")
    require(
      full.worst == nil || full.findingCount > 0 && !full.findings.isEmpty, "a finding is lost")
    read(reader, isIntact: full.isIntact, unverifiable: full.unverifiableCount > 0)
    rebuild(reader, full)
  }

  /// Whether the content is little, or this is one of the few inputs of which it is not: a run of
  /// one with frames of megabytes takes as long as a thousand others.
  private static func isWorthWhile(_ file: Span<UInt8>) -> Bool {
    var (content, place) = (0, 0)
    while let frame = try? DataFrame(file, at: place, limit: file.count) {
      content += frame.contentSize
      place = frame.end
    }
    return content < 1 << 18 || XXH64.hash(file) & 0x1f == 0
  }

  private static func verify(_ reader: ArchiveReader, _ depth: Survey.Depth)
    -> ArchiveVerification
  {
    do {
      return try reader.verify(depth, workers: 1)
    } catch {
      fatalError("verifying threw: \(error)")
    }
  }

  private static func read(_ reader: ArchiveReader, isIntact: Bool, unverifiable: Bool) {
    let count = reader.generation.sectionCount
    func must(_ work: () throws -> Void) {
      do {
        try work()
      } catch is Enough {
      } catch {
        require(error is ArchiveError, "another error: \(error)")
        require(!isIntact, "the archive verifies, and reading it fails: \(error)")
      }
    }
    must {
      _ = try reader.carHeader
    }
    for ordinal in 0..<min(count, maximumReads) {
      must {
        let section = try reader.section(at: ordinal)
        require(section.ordinal == ordinal, "a section has another number")
        if isIntact {
          require(try reader.ordinal(of: section.cid) == ordinal, "a CID has another number")
        }
        guard section.bodyLength <= 1 << 20 else { return }
        guard let body = try reader.body(of: section.cid) else {
          require(!isIntact, "the archive verifies, and a section is not found")
          return
        }
        require(section.cid.verify(body.span) != .mismatch, "a body that is not what its CID says")
      }
    }
    must {
      require(
        try reader.ordinal(of: CID(codec: .raw, hashing: [0x5a, 0x5a].span)) == nil,
        "a section is found that is not there")
    }
    var length: UInt64 = 0
    must {
      try reader.copySections(CollectionOfOne(0..<count)) { piece in
        length += UInt64(piece.count)
        if length > UInt64(maximumStream) { throw Enough() }
      }
      length += UInt64(try reader.carHeader.count)
      require(
        !isIntact || length == reader.generation.streamLength, "the stream has another length")
    }
    var total = 0
    must {
      try reader.forEachSection(
        begin: { _ in true },
        chunk: { piece in
          total += piece.count
          if total > maximumStream { throw Enough() }
        })
    }
  }

  /// Makes the index from a survey: it must be the one in the file, if all is well.
  private static func rebuild(_ reader: ArchiveReader, _ full: ArchiveVerification) {
    guard reader.generation.number > 0 else { return }
    do {
      let found = try Survey(reader.file)
      guard full.isIntact, !reader.generation.features.isRepaired else { return }
      require(found.isWhole, "the archive verifies, and its frames are not whole")
      require(found.sectionCount == reader.generation.sectionCount, "there are other sections")
      require(found.contentLength == reader.generation.streamLength, "there is another stream")
      try reader.file.withBytes { (bytes) throws in
        let index = try ArchiveIndex.empty.appending(found.segment(in: bytes))
        for ordinal in 0..<min(full.sectionCount, 256) {
          guard let left = index.row(of: ordinal, in: bytes),
            let right = reader.index.row(of: ordinal, in: bytes)
          else { fatalError("section \(ordinal) is in no frame") }
          require(left.entry == right.entry, "section \(ordinal) is in another frame")
        }
      }
    } catch {
      require(error is ArchiveError, "another error: \(error)")
      require(!full.isIntact, "the archive verifies, and its frames give no index: \(error)")
    }
  }

  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]] {
    try ArchiveSeeds.all().flatMap { archive in
      // A tail makes no other archive of it, and one of some tails makes it one of the few.
      var whole = archive
      while !isWorthWhile(whole.span) { whole.append(0) }
      return [0, 31].map { [$0] + whole } + [[31] + archive.prefix(archive.count * 2 / 3)]
    }
  }
}
