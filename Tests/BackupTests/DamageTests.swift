import ATProtocol
import Archive
import Foundation
import IPLD
import Snapshots
import SystemPackage
import TestSupport
import Testing
import Verification

@Suite struct `A small archive, damaged everywhere` {
  /// An archive with all that an archive can have, and where every section of it lies.
  private struct Sample {
    let packed: Packed
    let bytes: [UInt8]
    var blobs: [(cid: CID, body: [UInt8], frame: Range<Int>)] = []

    init() throws {
      var random = SeededGenerator(printing: 0xda3a_0001)
      var bodies = (0..<5).map { _ in random.bytes(1500) }
      bodies += (0..<3).map { _ in random.text(3000) }
      bodies.append(random.text(66_000))
      var repository = try TestRepository(posts: 60)
      for (number, body) in bodies.enumerated() {
        try repository.add("a.b.c/\(number)", blob: .blob(body))
      }
      try repository.add("a.b.c/lost", blob: .blob([1]))
      var facts = AccountFacts()
      facts.plcLog = Array("[]".utf8)
      packed = try Packed(
        car: try repository.car(),
        blobs: Dictionary(
          uniqueKeysWithValues: (bodies + [Array("extra".utf8)]).enumerated().map { ("\($0)", $1) }),
        extras: true, facts: facts)
      bytes = try packed.bytes
      let reader = try packed.reader
      let file = try MappedFile(packed.path)
      try file.withBytes { file throws in
        let index = try ArchiveIndex(reader.generation, in: file)
        for body in bodies {
          let cid = CID.blob(body)
          guard var ordinal = try reader.ordinal(of: cid) else { continue }
          var place = index.row(of: ordinal, in: file)
          while place == nil, ordinal > 0 {
            ordinal -= 1
            place = index.row(of: ordinal, in: file)
          }
          guard let entry = place?.entry else { continue }
          blobs.append((cid, body, Int(entry.offset)..<Int(entry.end)))
        }
      }
      print("\(bytes.count) bytes, \(blobs.count) blobs")
    }

    /// All places but most of those deep inside of what is compressed, which are much alike.
    var places: [Int] {
      let deep = blobs.map { $0.frame.dropFirst(100).dropLast(50) }
      return bytes.indices.filter { place in
        place % 10 == 0 || !deep.contains { $0.contains(place) }
      }
    }

    /// Reads every blob: what comes back is right, and what was not touched comes back.
    func check(_ reader: ArchiveReader, _ what: String, isWhole: (Range<Int>) -> Bool) {
      for (cid, body, frame) in blobs {
        do {
          let stored = try reader.body(of: cid)
          if stored != body, stored != nil || isWhole(frame) {
            Issue.record("\(what): \(cid) comes back otherwise")
          }
        } catch {
          if isWhole(frame) { Issue.record("\(what): \(cid): \(error)") }
        }
      }
    }
  }

  @Test func `is never called intact or merely incomplete, whichever byte is inverted`() throws {
    let sample = try Sample()
    #expect(sample.blobs.count == 9)
    #expect(try sample.packed.verify().verdict == .incomplete)
    let file = try FileDescriptor.open(sample.packed.path, .readWrite)
    defer { try? file.close() }
    for place in sample.places {
      try file.writeAll(toAbsoluteOffset: Int64(place), [~sample.bytes[place]])
      defer { _ = try? file.writeAll(toAbsoluteOffset: Int64(place), [sample.bytes[place]]) }
      let what = "byte \(place)"
      do {
        let reader = try sample.packed.reader
        // The whole of it at every 16th byte, and whether bytes are as they were at every one.
        let depth: SnapshotVerifier.Depth = place % 16 == 0 ? .full : .quick
        let verdict = try SnapshotVerifier().verify(reader, depth).verdict
        if verdict != .damaged { Issue.record("\(what): \(verdict)") }
        sample.check(reader, what) { !$0.contains(place) }
      } catch {
        Issue.record("\(what): \(error)")
      }
    }
  }

  @Test func `is never called intact or merely incomplete, wherever it is cut off`() throws {
    let sample = try Sample()
    let file = try FileDescriptor.open(sample.packed.path, .readWrite)
    defer { try? file.close() }
    for length in sample.bytes.indices.reversed() {
      try file.resize(to: Int64(length))
      let what = "cut off at \(length)"
      // Rebuilding takes a walk through all of it, so not at each and every place.
      guard length % 7 == 0 || length < 200 || length > sample.bytes.count - 1000 else { continue }
      do {
        let reader = try sample.packed.reader
        let depth: SnapshotVerifier.Depth = length % 5 == 0 ? .full : .quick
        let verdict = try SnapshotVerifier().verify(reader, depth).verdict
        if verdict != .damaged { Issue.record("\(what): \(verdict)") }
        sample.check(reader, what) { $0.upperBound <= length }
      } catch is ArchiveError {
        // Not even the first frame is left; the command says 11 for all of these.
        #expect(length < 200, "\(what)")
      } catch {
        Issue.record("\(what): \(error)")
      }
    }
  }
}
