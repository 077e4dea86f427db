import Archive
import ArchiveTestSupport
import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Remote

/// A local copy of some generations, of which footers on the way do not hold: the power failed
/// while they were written, or they were damaged since.
@Suite struct `A copy whose footers on the way are torn` {
  @Test func `is fetched again from the last footer to which none is missing`() throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0x7011_0001)
    let storage = MemoryStorage()
    for _ in 0..<6 {
      var writer = try ArchiveWriter.open(storage, carHeader: CARHeader(roots: []).bytes)
      for _ in 0..<3 {
        let body = random.bytes(2000)
        try writer.append(.blob(body), body.span)
      }
      try writer.checkpoint()
    }
    let remote = storage.bytes
    let footers = ForwardWalk(remote).footers
    for torn in [[1], [2], [1, 2], [1, 3], [0, 1, 2, 3]] {
      for count in [footers[4].upperBound, footers[4].upperBound + 1000, remote.count] {
        var local = Array(remote[..<count])
        for number in torn {
          local.replaceSubrange(footers[number].prefix(4), with: repeatElement(0, count: 4))
        }
        let path = FilePath(try folder.write("a.car.zst", local))
        let pull = ArchivePull(from: MemoryServer(bytes: remote), to: path, replaces: false)
        _ = try pull.run()
        #expect(try folder.read("a.car.zst") == remote, "footers \(torn), of \(count) bytes")
      }
      // What has more than lies there is left alone.
      var ahead = remote
      for number in torn {
        ahead.replaceSubrange(footers[number].prefix(4), with: repeatElement(0, count: 4))
      }
      let path = FilePath(try folder.write("a.car.zst", ahead))
      let older = Array(remote[..<footers[4].upperBound])
      let pull = ArchivePull(from: MemoryServer(bytes: older), to: path, replaces: false)
      #expect(try pull.run().outcome == .ahead)
      #expect(try folder.read("a.car.zst") == ahead)
    }
  }
}
