import ArchiveTestSupport
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `An archive of accounts that change at random on their server` {
  @Test func `gives back what the server gave, after anything that is done to it`() throws {
    var counts: [String: Int] = [:]
    for var round in Torture.rounds(3, from: 0x5e2e_0000) {
      var archive = try ServedArchive(round.number)
      for number in 0..<30 {
        do {
          try archive.step(using: &round.random)
        } catch {
          Issue.record("\(round), step \(number), \(archive.last): \(error)")
          break
        }
      }
      try archive.check(isFull: true)
      counts.merge(archive.counts, uniquingKeysWith: +)
    }
    let list = counts.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }
    Torture.report(counts: list.joined(separator: ", "))
    #expect(counts.count >= 8 && counts.values.reduce(0, +) > 60)
  }
}
