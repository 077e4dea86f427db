import ArchiveTestSupport
import Foundation
import TestSupport
import Testing

/// The exit status of every verb that reads an archive, by the archive's state.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `The exit status` {
  /// The words for a verb, and the status for each state in the order of the first line.
  private static let table = """
    # archive                                      whole incomplete partial damaged unvouched private hostile
    info A                                         0     0          0       0       10        0       0
    status A                                       0     10         10      0       10        0       0
    log A                                          0     0          0       0       10        0       0
    log A RECORD                                   0     0          0       0       10        0       0
    ls A                                           0     10         10      11      10        0       0
    ls --blobs A                                   0     10         10      11      10        0       0
    cat A RECORD                                   0     0          0       0       10        0       0
    cat --json A app.bsky.feed.post                0     0          10      11      10        0       0
    stats A                                        0     0          10      11      10        0       0
    find number A                                  0     0          10      11      10        0       0
    diff A 1 1                                     0     0          0       0       10        0       0
    missing A                                      0     10         10      11      10        0       0
    verify A                                       0     10         10      11      10        0       11
    verify --quick A                               0     10         10      0       10        0       0
    prove A RECORD -o proof.car                    0     0          0       0       10        0       11
    extract --car A -o out.car                     0     0          10      11      10        0       0
    extract --car A -d out                         0     0          10      11      10        0       0
    extract --records A -d out                     0     0          10      11      10        0       0
    extract --blobs A -d out                       0     10         10      11      10        0       0
    extract --metadata A -d out                    0     0          0       0       10        0       0
    extract --all A -d out                         0     10         10      11      10        0       0
    extract --private A -d out                     0     0          0       0       10        0       0
    extract A RECORD -d out                        0     0          0       0       10        0       0
    export --csv out A                             0     0          10      11      10        0       0
    export --html out A                            0     0          10      11      10        0       0
    export --sqlite out.db A                       0     0          10      11      10        0       0
    compact A -o out.car.zst                       0     0          0       11      11        0       11
    prune --dry-run --keep-last 1 A                0     0          0       0       0         0       0
    merge A -o out.car.zst                         0     0          0       11      11        0       11
    repair A                                       0     10         10      11      0         0       11
    repair A -o out.car.zst                        0     10         10      10      0         0       11
    extract -q --car A -o c && carpack inspect c   0     0          10      11      10        0       11
    """

  struct Cell: CustomTestStringConvertible {
    let words: String
    let state: ArchiveState
    let status: Int32
    var testDescription: String { "carpack \(words) of an archive that is \(state.rawValue)" }
  }

  static let cells: [Cell] = {
    let lines = table.split(separator: "\n")
    let states = lines[0].split(separator: " ").dropFirst(2)
    return lines.dropFirst().flatMap { line -> [Cell] in
      let parts = line.split(separator: " ")
      let words = parts.dropLast(states.count).joined(separator: " ")
      return zip(states, parts.suffix(states.count)).compactMap { name, status in
        guard let state = ArchiveState(rawValue: String(name)), let status = Int32(status) else {
          return nil
        }
        return Cell(words: words, state: state, status: status)
      }
    }
  }()

  /// The bytes of an archive in each state.
  private static let archives = Result {
    try ArchiveState.allCases.map { state in
      let folder = try TemporaryFolder()
      try state.write(to: folder)
      return (state, try folder.read("a.car.zst"))
    }
  }

  @Test func `is stated for every state`() {
    #expect(Set(Self.cells.map(\.state)) == Set(ArchiveState.allCases))
  }

  @Test(arguments: cells) func `is what the table says`(_ cell: Cell) throws {
    let folder = try TemporaryFolder()
    let archive = try #require(Self.archives.get().first { $0.0 == cell.state })
    try folder.write("a.car.zst", archive.1)
    let words = cell.words.replacing(" A", with: " a.car.zst")
      .replacing("RECORD", with: ArchiveState.record)
    let result = try Command(in: folder).run("carpack \(words)")
    #expect(result.status == cell.status, "\(result.text)\(result.errors)")
  }
}
