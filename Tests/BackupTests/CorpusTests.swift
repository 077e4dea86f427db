import ATProtocol
import Archive
import Files
import Foundation
import IPLD
import Packing
internal import Snapshots
import SystemPackage
import TestSupport
import Testing
import Verification

/// What a corpus file says about the repository beside it, as far as it is of use here.
private struct Expectation: Decodable {
  var complete: Bool?
  var error: String?
  var expected: String?
  var record_count: Int?
  var blob_cids: [String]?

  var isRejected: Bool {
    complete == nil || error != nil || expected?.hasPrefix("reject") == true
  }
}

/// An entry of a manifest of media.
private struct Media: Decodable {
  var file: String
  var blob_cid: String
}

@Suite(.enabled(if: Corpus.isPresent, Comment(rawValue: Corpus.absence)))
struct `Real repositories` {
  @Test(arguments: Corpus.files(under: "repos", suffix: ".expected.json"))
  func `are packed, verified and given back bit for bit`(name: String) throws {
    let expectation = try Corpus.json(name, as: Expectation.self)
    let carName = name.replacing(".expected.json", with: ".car")
    guard let car = try? Corpus.bytes(carName) else { return }
    if expectation.isRejected {
      #expect(throws: (any Error).self) { _ = try Packed(car: car) }
      return
    }
    let packed = try Packed(car: car)
    #expect(packed.report.snapshot.isComplete == (expectation.complete ?? true))
    #expect(packed.report.snapshot.counts.records == expectation.record_count)
    #expect(try packed.restoredCAR() == car)
    let verified = try packed.verify()
    #expect(verified.damage == [])
    #expect(verified.damagedBlobs.isEmpty)
    let isWhole = packed.report.snapshot.isComplete && packed.report.missing.isEmpty
    #expect(verified.verdict == (isWhole ? .intact : .incomplete))
    #expect(verified.missingBlobs.count == packed.report.missing.count)
    let missing = Set(packed.report.missing.map { "\($0.cid)" })
    #expect(missing.isSuperset(of: expectation.blob_cids ?? []))
  }

  @Test func `come back with every blob, and media does not grow`() throws {
    let folders = Corpus.files(under: "repos", suffix: "blobs.manifest.json")
    let media = try Corpus.files(under: "media", suffix: "manifest.json").flatMap {
      try Corpus.json($0, as: [Media].self)
    }
    let root = try #require(Corpus.root)
    for manifest in folders {
      let folder = String(manifest.dropLast("/blobs.manifest.json".count))
      let car = try #require(Corpus.files(under: folder, suffix: ".car").last)
      let temporary = try TemporaryFolder()
      func pack(_ name: String, media: Bool) throws -> (ArchiveReader, RepositoryPacker.Report) {
        var options = RepositoryPacker.Options(
          tool: "tests", createdAt: "2026-01-02T03:04:05Z", hostSystem: "Linux", milliseconds: { 0 }
        )
        options.keepsExtras = media
        options.startsOver = true
        let folders = [BlobFolder("\(root)/\(folder)/blobs")]
        let path = FilePath(temporary.file(name))
        let report = try RepositoryPacker(options).pack(
          InputFile("\(root)/\(car)"),
          folders: folders + (media ? [BlobFolder("\(root)/media")] : []),
          into: FileStorage.create(path))
        return (try ArchiveReader(path: path), report)
      }
      let (reader, report) = try pack("all.car.zst", media: true)
      #expect(report.refused.isEmpty)
      #expect(report.missing.isEmpty)
      for entry in media {
        let content = try Corpus.bytes(entry.file)
        #expect(try reader.body(of: CID(entry.blob_cid)) == content, "\(entry.file)")
      }
      for blob in Corpus.files(under: "\(folder)/blobs", suffix: "") {
        guard let cid = BlobFolder.claimedCID(blob) else { continue }
        let content = try Corpus.bytes(blob)
        if let stored = try reader.body(of: cid) { #expect(stored == content) }
      }
      #expect(try SnapshotVerifier().verify(reader, .full).verdict == .intact)
      // All of the media with everything that goes with it, beside the bytes themselves.
      let (_, plain) = try pack("plain.car.zst", media: false)
      let growth = Double(report.generation.committedLength - plain.generation.committedLength)
      let files = Set(media.map(\.blob_cid)).count
      let bytes = try Dictionary(
        media.map { ($0.blob_cid, $0.file) }, uniquingKeysWith: { a, _ in a }
      )
      .values.reduce(0) { $0 + (try Corpus.bytes($1).count) }
      #expect(growth <= Double(bytes) * 1.001 + 96 * Double(files))
    }
  }
}
