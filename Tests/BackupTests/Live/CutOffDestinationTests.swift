import Archive
import Foundation
import StandIn
import SystemPackage
import TestSupport
import Testing
internal import Verification

@testable import Files
@testable import Live
@testable import Snapshots

@Suite(.timeLimit(.minutes(15))) struct `A backup into an archive that was cut off` {
  private let alice: StandInAccount
  private let scene: AccountScene

  init() throws {
    alice = try StandInAccount("alice", posts: 3)
    scene = try AccountScene([alice])
  }

  /// Backs up three times, cuts off some of the last snapshot, and backs up twice more.
  private func reports(keeping kept: (_ lengths: [Int]) -> Int, asCopy: Bool = false) async throws
    -> [BackupReport]
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
    let first = try await scene.backUp(alice, into: "a.car.zst")
    #expect(first.outcome == .complete)
    #expect(try scene.verdict(first.path) == .intact)
    return [first, try await scene.backUp(alice, into: "a.car.zst")]
  }

  @Test func `says what was there, until a complete one stands behind what is left`() async throws {
    guard FileAttribute(name: "user.carpack.test").write("x", to: FilePath(scene.folder.path))
    else { return }
    let reports = try await reports(keeping: { $0[1] })
    #expect(reports.map(\.isBehindOlderCopy) == [true, false])
    #expect(reports.map(\.damage.isNone) == [true, true])
    #expect(
      reports[0].warnings.count == 1 && reports[0].warnings[0].contains("it held 3 snapshots"),
      "\(reports[0].warnings)")
    #expect(reports[1].outcome == .upToDate && reports[1].warnings.isEmpty)
    // What is there now is noted for the next time.
    let path = scene.path("a.car.zst")
    let file = try FileHandle(forUpdating: URL(filePath: path.string))
    try file.truncate(atOffset: UInt64(try scene.folder.read("a.car.zst").count - 500))
    try file.close()
    #expect(WrittenSize.loss(of: path)?.content?.snapshotCount == 3)
  }

  @Test func `warns of a tail, where it is not known whether it was more`() async throws {
    let reports = try await reports(keeping: { ($0[1] + $0[2]) / 2 }, asCopy: true)
    #expect(
      reports[0].warnings.count == 1 && reports[0].warnings[0].contains("the archive ends in"),
      "\(reports[0].warnings)")
    #expect(reports.allSatisfy(\.damage.isNone) && reports[1].warnings.isEmpty)
  }

  @Test func `says of a tail with a footer that does not hold that this is damaged`() async throws {
    for number in 0..<2 {
      try alice.commit([alice.post("3zzzzzzzzzzz\(number)", "post \(number)")])
      _ = try await scene.backUp(alice, into: "a.car.zst")
    }
    var damaged = try scene.folder.read("a.car.zst")
    damaged[damaged.count - 100] ^= 1
    try scene.folder.write("a.car.zst", damaged)
    let warnings = try await scene.backUp(alice, into: "a.car.zst").warnings
    #expect(warnings.contains { $0.contains("whose footer is damaged") }, "\(warnings)")
  }

  @Test func `of another repository, of which nothing was committed, is refused by name`()
    async throws
  {
    _ = try await scene.backUp(alice, into: "a.car.zst")
    let stump = try Array(scene.folder.read("a.car.zst").prefix(200))
    try alice.commit([alice.post("3zzzzzzzzzzz0", "post")])
    try scene.folder.write("a.car.zst", stump)
    let error = try #require(
      await #expect(throws: ArchiveError.self) {
        try await scene.backUp(alice, into: "a.car.zst")
      })
    #expect("\(error)".contains("a.car.zst"), "\(error)")
  }
}
