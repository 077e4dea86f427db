import StandIn
import TestSupport
import Testing

@Suite(
  .enabled(if: Command.path != nil, Comment(rawValue: Command.absence)),
  .enabled(
    if: Command.path?.contains("/debug/") != true,
    "the command is a debug build, which takes more memory than the one that people have"))
struct `A backup's memory` {
  /// The memory that the command may use at a time, in bytes.
  ///
  /// The libraries of the tested command count: the released one has them inside, and some 10 MiB
  /// less.
  private static let limit = 80 << 20

  @Test func `does not follow the size of blobs, or how many there are`() throws {
    let scene = try NetworkScene(
      posts: 20, blobs: 60, blobSize: 1_500_000, large: [50_000_000, 70_000_000])
    let running = try scene.command.start(scene.line())
    var peak = 0
    while running.isRunning {
      peak = max(peak, running.peakMemory ?? 0)
      pause(0.005)
    }
    let result = try running.wait()
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    // Only Linux says what a process has had.
    #if os(Linux)
      #expect(peak > 0)
    #endif
    #expect(peak < Self.limit, "\(peak >> 20) MiB")
    let verified = try scene.command.run("carpack verify -q \(NetworkScene.archive)")
    #expect(verified.status == 0, "\(verified.errors)")
  }
}
