import ArchiveTestSupport
import TestSupport
import Testing

@Suite struct `An archive to which things are done at random` {
  @Test func `gives back what it should after each of them`() throws {
    let image = try ArchiveImage()
    var counts: [String: Int] = [:]
    for var round in Torture.rounds(6, from: 0x30de_0000) {
      var archive = try ModelledArchive(image)
      for number in 0..<100 {
        do {
          try archive.step(using: &round.random)
        } catch {
          Issue.record("\(round), step \(number), \(archive.last): \(error)")
          break
        }
      }
      counts.merge(archive.counts, uniquingKeysWith: +)
    }
    let list = counts.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }
    Torture.report(counts: list.joined(separator: ", "))
    #expect(counts.count >= 9 && counts.values.reduce(0, +) > 350)
  }
}
