import Foundation
import Synchronization
import TestSupport

/// Verbs, each stopped by a signal while one of its partners is frozen at one of its calls.
///
/// A command that has been told to end does so in time, with the signal's status; run again, it
/// completes, and leaves what it leaves where nothing was frozen.
package struct FrozenMatrix: Sendable {
  /// A place at which a verb is stopped.
  private struct Cell: Sendable {
    let verb: Int
    let partner: Int
    let place: FrozenPlace
    let signal: Int32
  }

  /// The result of a cell.
  private struct Outcome: Sendable {
    let cell: Cell
    let row: String
    let line: String
    let seconds: Double
    let faults: [String]
  }

  /// A run in which nothing was frozen.
  private struct Undisturbed: Sendable {
    let places: [[FrozenPlace]]
    let state: [String]
  }

  /// `CARPACK_FROZEN=all`: each call of each verb is frozen in each manner.
  private static let isExhaustive =
    ProcessInfo.processInfo.environment["CARPACK_FROZEN"] == "all"
  /// How many seconds a command may take to end.
  ///
  /// On a busy machine, for ever has to be told from at once.
  private static let limit = isExhaustive ? 2.0 : 10
  /// How many seconds a signal may come before a command's own end, on a busy machine: some calls
  /// are given up, and the command continues without them.
  private static let meeting = 3.0
  /// How many seconds a command may take to come to a call, or to complete.
  private static let patience = 120.0
  /// How many commands run at a time: most of them wait.
  private static let workers = 6

  private let verbs: [FrozenVerb]
  private let count: Int

  /// - Parameters:
  ///   - verbs: which.
  ///   - count: how many cells are chosen, where not all are wanted.
  package init(_ verbs: [FrozenVerb], choosing count: Int) {
    (self.verbs, self.count) = (verbs, count)
  }

  /// Stops the verbs, and prints the matrix.
  ///
  /// - Returns: What went wrong.
  package func run() throws -> [String] {
    let undisturbed = Self.inParallel(Array(verbs.indices)) { number in
      Result { try observe(verbs[number]) }
    }
    var faults: [String] = []
    for (verb, result) in zip(verbs, undisturbed) {
      if case .failure(let error) = result { faults.append("\(verb.name): \(error)") }
    }
    let runs = undisturbed.map { try? $0.get() }
    let outcomes = Self.inParallel(cells(runs)) { cell in
      do {
        return try stop(cell, after: runs[cell.verb]?.state ?? [])
      } catch {
        let name = verbs[cell.verb].name
        return Outcome(
          cell: cell, row: name, line: "\(error)", seconds: 0, faults: ["\(name): \(error)"])
      }
    }
    show(outcomes)
    return faults + outcomes.flatMap(\.faults)
  }

  // MARK: Cells

  /// All cells, or a random sample of each verb's cells.
  private func cells(_ runs: [Undisturbed?]) -> [Cell] {
    var random = SeededGenerator()
    var ranked: [(rank: Int, cell: Cell)] = []
    for (verb, run) in runs.enumerated() {
      let places = (run?.places ?? []).enumerated().flatMap { partner, places in
        places.map { (partner, $0) }
      }
      for (rank, (partner, place)) in places.shuffled(using: &random).enumerated() {
        let signal = Bool.random(using: &random) ? SIGINT : SIGTERM
        ranked.append((rank, Cell(verb: verb, partner: partner, place: place, signal: signal)))
      }
    }
    print("\(random)")
    guard !Self.isExhaustive else { return ranked.map(\.cell) }
    return ranked.sorted { $0.rank < $1.rank }.prefix(max(count, verbs.count)).map(\.cell)
  }

  private func observe(_ verb: FrozenVerb) throws -> Undisturbed {
    let stage = try verb.stage()
    defer { stage.finish() }
    let result = try Self.complete(stage)
    guard result.status == 0 else {
      throw Unexpected("it ends with \(result.status): \(result.text)\(result.errors)")
    }
    return Undisturbed(places: stage.partners.map(\.partner.places), state: stage.state())
  }

  private func stop(_ cell: Cell, after expected: [String]) throws -> Outcome {
    let stage = try verbs[cell.verb].stage()
    defer { stage.finish() }
    let (name, partner) = stage.partners[cell.partner]
    partner.freeze(cell.place)
    defer { partner.thaw() }
    let running = try stage.start()
    Self.wait(Self.patience) { !running.isRunning || partner.frozenCall != nil }
    // What has been sent to it has arrived by then.
    Thread.sleep(forTimeInterval: 0.3)
    let (call, wasRunning, begin) = (partner.frozenCall, running.isRunning, ContinuousClock.now)
    for number in 0..<stage.signals {
      if number > 0 { Thread.sleep(forTimeInterval: 0.1) }
      running.signal(cell.signal)
    }
    let limit = Self.limit + stage.grace
    Self.wait(2 * limit) { !running.isRunning }
    let seconds = (ContinuousClock.now - begin) / .seconds(1)
    running.signal(SIGKILL)
    let result = try running.wait()
    partner.thaw()
    let row = "\(verbs[cell.verb].name): \(name)"
    let what = "\(row), \(call ?? "not asked"), \(cell.place.manner.rawValue)"
    // The end of an answer may have come before the signal, where the body is nothing or a byte, or
    // the command does not wait for it.
    let status = wasRunning ? stage.status ?? 128 + cell.signal : 0
    var faults: [String] = []
    func expect(_ isSo: Bool, _ fault: @autoclosure () -> String) {
      if !isSo { faults.append("\(what): \(fault())") }
    }
    expect(seconds < limit, "it has not ended after \(seconds) s")
    let said = "\(result.text.suffix(2000))\(result.errors)"
    let hasEndedItself = result.status == 0 && seconds < Self.meeting
    expect(
      result.status == status || hasEndedItself,
      "it ended with \(result.status), not \(status): \(said)")
    Thread.sleep(forTimeInterval: stage.rest)
    let next = try Self.complete(stage)
    expect(next.status == 0, "the next one ended with \(next.status): \(next.text)\(next.errors)")
    let state = stage.state()
    expect(state == expected, "afterwards there is \(state), not \(expected)")
    let end = wasRunning ? "\(result.status)" : "had ended"
    let line = "\(what): \(end), \((seconds * 100).rounded() / 100) s"
    return Outcome(cell: cell, row: row, line: line, seconds: seconds, faults: faults)
  }

  /// Runs a command to its end.
  private static func complete(_ stage: FrozenStage) throws -> Command.Result {
    let running = try stage.start()
    wait(patience) { !running.isRunning }
    running.signal(SIGKILL)
    return try running.wait()
  }

  private static func wait(_ seconds: Double, until isSo: () -> Bool) {
    let end = ContinuousClock.now + .seconds(seconds)
    while !isSo(), .now < end { Thread.sleep(forTimeInterval: 0.01) }
  }

  /// Does something with several values, some of them at a time, on threads that may wait.
  private static func inParallel<Value: Sendable, Made: Sendable>(
    _ values: [Value], _ body: @escaping @Sendable (Value) -> Made
  ) -> [Made] {
    let made = Mutex<[Int: Made]>([:])
    let next = Mutex(0)
    let group = DispatchGroup()
    for _ in 0..<min(workers, values.count) {
      group.enter()
      let thread = Thread {
        while true {
          let number = next.withLock { number in
            defer { number += 1 }
            return number
          }
          guard number < values.count else { break }
          let result = body(values[number])
          made.withLock { $0[number] = result }
        }
        group.leave()
      }
      thread.start()
    }
    group.wait()
    return made.withLock { made in values.indices.compactMap { made[$0] } }
  }

  // MARK: The matrix

  private func show(_ outcomes: [Outcome]) {
    if Self.isExhaustive { for outcome in outcomes { print(outcome.line) } }
    var rows: [[String]] = [["verb: partner"] + Freeze.allCases.map(\.rawValue) + ["longest"]]
    let groups = Dictionary(grouping: outcomes) { [$0.cell.verb, $0.cell.partner] }
    for (_, group) in groups.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      let counts = Freeze.allCases.map { manner in
        let tried = group.filter { $0.cell.place.manner == manner }
        let good = tried.count { $0.faults.isEmpty }
        return tried.isEmpty ? "" : good == tried.count ? "\(good)" : "\(good) of \(tried.count)"
      }
      let longest = group.map(\.seconds).max() ?? 0
      rows.append([group[0].row] + counts + ["\((longest * 100).rounded() / 100) s"])
    }
    let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    for row in rows {
      let cells = zip(row, widths).map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }
      print(cells.joined(separator: "  "))
    }
    print("\(outcomes.count) cells, \(outcomes.count { !$0.faults.isEmpty }) not in order")
  }

  private struct Unexpected: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }
}
