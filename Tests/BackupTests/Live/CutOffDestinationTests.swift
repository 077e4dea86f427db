import Archive
import Foundation
import StandIn
import SystemPackage
import TestSupport
import Testing
internal import Verification

@testable import Files
@testable import Live

@Suite(.timeLimit(.minutes(15))) struct `A backup into an archive that was cut off` {
  private let alice: StandInAccount
  private let scene: AccountScene

  init() throws {
    alice = try StandInAccount("alice", posts: 3)
    scene = try AccountScene([alice])
  }

  /// Backs up three times, cuts off some of the last snapshot, and backs up again.
  private func warnings(keeping kept: (_ lengths: [Int]) -> Int, asCopy: Bool = false) async throws
    -> [String]
  {
    var lengths: [Int] = []
    for number in 0..<3 {
      try alice.commit([alice.post("3zzzzzzzzzzz\(number)", "post \(number)")])
      #expect(try await scene.backUp(alice, into: "a.car.zst").warnings.isEmpty)
      lengths.append(try scene.folder.read("a.car.zst").count)
    }
    let length = kept(lengths)
    if asCopy {
      try scene.folder.write("a.car.zst", Array(scene.folder.read("a.car.zst").prefix(length)))
    } else {
      let file = try FileHandle(forUpdating: URL(filePath: scene.folder.file("a.car.zst")))
      try file.truncate(atOffset: UInt64(length))
      try file.close()
    }
    let report = try await scene.backUp(alice, into: "a.car.zst")
    #expect(report.outcome == .complete)
    #expect(try scene.verdict(report.path) == .intact)
    #expect(try await scene.backUp(alice, into: "a.car.zst").warnings.isEmpty)
    return report.warnings
  }

  @Test func `warns of what was lost, and once only`() async throws {
    guard FileAttribute(name: "user.carpack.test").write("x", to: FilePath(scene.folder.path))
    else { return }
    let cut = try await warnings { $0[1] }
    #expect(cut.count == 1 && cut[0].contains("bytes shorter than carpack left it"), "\(cut)")
  }

  @Test func `warns of a tail, where it is not known whether it was more`() async throws {
    let tail = try await warnings(keeping: { ($0[1] + $0[2]) / 2 }, asCopy: true)
    #expect(
      tail.count == 1 && tail[0].contains("the archive ends in")
        && tail[0].contains("a write that was not finished"), "\(tail)")
  }
}
