import ATProtocol
import Archive
import Copying
import Foundation
import IPLD
import Snapshots
import SystemPackage
import TestSupport
import Testing

/// What a golden archive has to give back.
private struct Listing: Decodable {
  struct Section: Decodable {
    var cid: String
    var length: UInt64
  }

  struct Snapshot: Decodable {
    var manifest: String
    var did: String
    var rev: String
    var createdAt: String
    var records: Int
    var blobsHeld: Int
    var blobsReferenced: Int
    var extras: Int
    var carBytes: UInt64
    var carSHA256: String
  }

  var sections: [Section]
  /// The newest first.
  var snapshots: [Snapshot]
}

@Suite struct `An archive of an earlier version` {
  private static let folder = "\(Command.packageRoot)/Fixtures/archives"

  private func open(_ name: String) throws -> ArchiveReader {
    try ArchiveReader(path: FilePath("\(Self.folder)/\(name).car.zst"))
  }

  @Test(arguments: ["one", "several", "smallest", "note", "unknown-optional"])
  func `gives back what it gave`(name: String) throws {
    let json = try Data(contentsOf: URL(filePath: "\(Self.folder)/\(name).expected.json"))
    let expected = try JSONDecoder().decode(Listing.self, from: json)
    let reader = try open(name)
    var sections: [String] = []
    try reader.forEachSection(
      begin: { section in
        sections.append("\(section.cid) \(section.bodyLength)")
        return true
      }, chunk: { _ in })
    #expect(sections == expected.sections.map { "\($0.cid) \($0.length)" })
    let history = try SnapshotHistory(of: reader)
    #expect(history.breaks == [])
    #expect(history.entries.reversed().map { "\($0.cid)" } == expected.snapshots.map(\.manifest))
    for snapshot in expected.snapshots {
      let archived = try ArchivedSnapshot(CID(snapshot.manifest), in: reader)
      let manifest = archived.snapshot
      #expect(manifest.did.text == snapshot.did && manifest.rev?.text == snapshot.rev)
      #expect(manifest.createdAt == snapshot.createdAt)
      #expect(manifest.counts.records == snapshot.records)
      #expect(manifest.blobs.held == snapshot.blobsHeld)
      #expect(manifest.blobs.referenced == snapshot.blobsReferenced)
      #expect(manifest.blobs.extras == snapshot.extras)
      let restored = try RestoredRepository(archived)
      #expect(restored.isExact)
      restored.withBytes { car in
        #expect(UInt64(car.count) == snapshot.carBytes)
        #expect(Hex.encode(SHA256.digest(of: car).bytes) == snapshot.carSHA256)
      }
    }
    #expect(try reader.verify().findings == [])
  }

  @Test func `that needs what no version knows is refused by name`() throws {
    let error = #expect(throws: ArchiveError.self) { try open("unknown-required") }
    #expect(error?.reason == .unknownFeatures(1 << 5))
    #expect(error?.description.contains("feature bit 5") == true)
  }

  @Test func `keeps the form of its index for life, and a copy has the packed one`() throws {
    let folder = try TemporaryFolder()
    let path = FilePath(folder.file("a.car.zst"))
    try FileManager.default.copyItem(
      atPath: "\(Self.folder)/several.car.zst", toPath: path.string)
    func footer(of path: FilePath) throws -> Range<Int> {
      let generation = try ArchiveReader(path: path).generation
      return Int(generation.footerOffset)..<Int(generation.committedLength)
    }
    // More generations than there are live segments.
    for number in 0..<20 as Range<UInt8> {
      var writer = try ArchiveWriter.open(FileStorage.open(path), carHeader: [1, 0xa0])
      try writer.append(CID(codec: .raw, hashing: [number].span), [number].span)
      let generation = try writer.commit(manifest: nil)
      #expect(generation.features == FeatureFlags() && generation.minorVersion == 0)
      #expect(generation.segments.count <= 12)
    }
    #expect(try ArchiveReader(path: path).verify().findings == [])
    if IndependentReader.isPresent {
      #expect(try IndependentReader.run(["verify", path.string]).status == 0)
    }
    // The newest index segment and its footer, and then only the segment.
    for isWhole in [true, false] {
      let bytes = try [UInt8](Data(contentsOf: URL(filePath: path.string)))
      let segment = try #require(ArchiveReader(path: path).generation.segments.last)
      let end = isWhole ? bytes.count : try footer(of: path).lowerBound
      var damaged = bytes
      for place in Int(segment.offset) + 30..<end { damaged[place] ^= 0x55 }
      try Data(damaged).write(to: URL(filePath: path.string))
      let report = try ArchiveRepair.run(FileStorage.open(path))
      #expect(report.lostSectionCount == 0)
      #expect(try [UInt8](Data(contentsOf: URL(filePath: path.string))) == bytes)
    }
    #expect(try ArchiveCopier().compact(path).isReplaced)
    let features = try ArchiveReader(path: path).generation.features
    #expect(features.required == FeatureFlags.packedIndex)
    #expect(try ArchiveReader(path: path).verify().findings == [])
    if IndependentReader.isPresent {
      #expect(try IndependentReader.run(["verify", path.string]).status == 0)
    }
  }

  @Test func `keeps the optional features it has when it is appended to`() throws {
    let folder = try TemporaryFolder()
    let path = FilePath(folder.file("a.car.zst"))
    try FileManager.default.copyItem(
      atPath: "\(Self.folder)/unknown-optional.car.zst", toPath: path.string)
    let before = try ArchiveReader(path: path).generation.features
    #expect(before.optional == 1 << 17)
    var writer = try ArchiveWriter.open(FileStorage.open(path), carHeader: [1, 0xa0])
    try writer.append(CID(codec: .raw, hashing: [1].span), [1].span)
    #expect(try writer.commit(manifest: nil).features == before)
  }

  @Test func `is described byte for byte by the example of FORMAT`() throws {
    let text = try String(contentsOfFile: "\(Command.packageRoot)/Docs/FORMAT.md", encoding: .utf8)
    let reader = try open("note")
    let file = try Data(contentsOf: URL(filePath: "\(Self.folder)/note.car.zst"))
    var stream = try reader.carHeader
    try reader.forEachSection(
      begin: { section in
        let length = section.cid.bytes.count + Int(section.bodyLength)
        stream += Self.varint(length) + section.cid.bytes
        return true
      }, chunk: { stream += $0.array })
    let example = try #require(text.firstRange(of: "## Appendix B"))
    let sources = [Array(file), stream]
    var number = 0
    var (source, lineCount) = ([UInt8](), 0)
    for line in text[example.upperBound...].split(separator: "\n") {
      if line.hasPrefix("0000  ") {
        source = try #require(sources.indices.contains(number) ? sources[number] : nil)
        number += 1
      }
      let parts = line.split(separator: "  ", maxSplits: 1)
      guard parts.count == 2, parts[0].count == 4, let offset = Int(parts[0], radix: 16) else {
        continue
      }
      let bytes = parts[1].prefix(47).split(separator: " ").prefix { $0.count == 2 }
        .compactMap { UInt8($0, radix: 16) }
      #expect(Array(source[offset..<offset + bytes.count]) == bytes, "\(line)")
      lineCount += 1
    }
    #expect(lineCount > 80)
  }

  @Test func `has the note that FORMAT spells out, if it has one`() throws {
    let text = try String(contentsOfFile: "\(Command.packageRoot)/Docs/FORMAT.md", encoding: .utf8)
    let section = try #require(text.firstRange(of: "### 4.4 "))
    let blocks = text[section.upperBound...].split(separator: "```\n", maxSplits: 2)
    #expect(blocks.count == 3 && blocks[1] == ArchiveNote.text)
    func note(of name: String) throws -> Bool {
      let file = try Data(contentsOf: URL(filePath: "\(Self.folder)/\(name).car.zst"))
      return file.firstRange(of: ArchiveNote.frame)?.lowerBound == 0x48
    }
    #expect(try note(of: "note") && !note(of: "smallest"))
  }

  private static func varint(_ number: Int) -> [UInt8] {
    var (rest, bytes) = (number, [UInt8]())
    while rest >= 0x80 {
      bytes.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }
}
