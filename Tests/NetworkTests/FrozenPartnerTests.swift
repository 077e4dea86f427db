import Foundation
import StandIn
import TestSupport
import Testing

/// Each verb is stopped while one of its requests is not answered, where `CARPACK_FROZEN` is set:
/// `all` freezes each in each manner, anything else three that are chosen by a seed.
@Suite(
  .enabled(if: Command.path != nil, Comment(rawValue: Command.absence)),
  .enabled(
    if: ProcessInfo.processInfo.environment["CARPACK_FROZEN"] != nil,
    "it measures seconds, on a machine that does nothing else: set CARPACK_FROZEN"))
struct `A signal while a server says nothing` {
  private static let terminate: Int32 = 15
  private static let kill: Int32 = 9
  private static let isExhaustive =
    ProcessInfo.processInfo.environment["CARPACK_FROZEN"] == "all"

  /// A request that is frozen: which server's, the how manieth, and how.
  private struct Cell {
    let server: Int
    let number: Int
    let manner: Freeze
  }

  @Test(arguments: FrozenVerb.all)
  func `ends the command at once, and the next one completes`(_ verb: FrozenVerb) throws {
    let well = try verb.stage()
    let first = try well.start().wait()
    try #require(first.status == 0, "\(first.text)\(first.errors)")
    var cells: [Cell] = []
    for (index, server) in well.servers.enumerated() {
      for number in server.log.indices {
        cells += Freeze.allCases.map { Cell(server: index, number: number, manner: $0) }
      }
    }
    try #require(!cells.isEmpty)
    if !Self.isExhaustive {
      var generator = SeededGenerator()
      print("\(verb.testDescription): \(generator)")
      cells = Array(cells.shuffled(using: &generator).prefix(3))
    }
    for cell in cells { try stop(verb, cell) }
  }

  private func stop(_ verb: FrozenVerb, _ cell: Cell) throws {
    let stage = try verb.stage()
    stage.servers[cell.server].freeze(cell.number, cell.manner)
    let running = try stage.start()
    let clock = ContinuousClock()
    let begin = clock.now
    while running.isRunning, stage.frozenRequest == nil, clock.now - begin < .seconds(30) {
      pause(0.01)
    }
    pause(0.5)
    let (asked, wasRunning, stopped) = (stage.frozenRequest, running.isRunning, clock.now)
    running.signal(Self.terminate)
    while running.isRunning, clock.now - stopped < .seconds(15) { pause(0.01) }
    let seconds = (clock.now - stopped) / .seconds(1)
    running.signal(Self.kill)
    let result = try running.wait()
    let what = "\(verb.testDescription), \(asked ?? "not asked"), \(cell.manner.rawValue)"
    if Self.isExhaustive {
      print("\(what): \(result.status)\(wasRunning ? "" : " (had ended)"), \(seconds) s")
    }
    // The end of an answer may have come before the signal, where the body is nothing or a byte, or
    // nobody waits for it.
    if wasRunning {
      #expect(seconds < 2, "\(what)")
      #expect(result.status == 143, "\(what): \(result.text)\(result.errors)")
    } else {
      #expect(result.status == 0, "\(what): \(result.text)\(result.errors)")
    }
    let next = try stage.start().wait()
    #expect(next.status == 0, "after \(what): \(next.text)\(next.errors)")
  }
}
