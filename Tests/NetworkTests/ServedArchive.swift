import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport

/// An archive of two accounts on a server, to which things are done at random, and what every
/// snapshot in it has to give back: the CAR that the server gave then.
///
/// What was killed may have happened or not; so there may be more than one model, of which one has
/// to be right.
struct ServedArchive {
  /// A snapshot: the account and the revision.
  private struct Key: Hashable, Comparable {
    let did: String
    let rev: String
    static func < (left: Key, right: Key) -> Bool { (left.did, left.rev) < (right.did, right.rev) }
  }

  /// What `carpack log --json` says of a snapshot.
  private struct Entry: Decodable {
    let number: Int
    let did: String
    let rev: String
    let vouched: Bool
  }

  private static let file = "all.car.zst"
  private static let copy = "copy.car.zst"
  /// Records are few, so that equal ones come under many keys; blobs, so that accounts share them.
  private static let texts = 6
  private static let blobs = (0..<8).map { BlobContent(noise: UInt64($0), size: 3000 + 700 * $0) }

  private let scene: NetworkScene
  private var given: [Key: [UInt8]] = [:]
  private var models: [Set<Key>] = [[]]
  private var copied: Set<Key>?
  /// Whether bytes of a write that was killed may follow what is committed.
  private var mayBeUnfinished = false
  /// How often each operation was done.
  private(set) var counts: [String: Int] = [:]
  /// What was done last, for messages.
  private(set) var last = "nothing"

  init(_ round: Int) throws {
    scene = try NetworkScene((0..<2).map { try StandInAccount("account-\(round)-\($0)") })
  }

  /// Does something, and looks at what the archive holds then.
  mutating func step(using random: inout SeededGenerator) throws {
    let operations:
      [(name: String, weight: Int, perform: (inout Self, inout SeededGenerator) throws -> Void)] = [
        ("backup", 30, { try $0.backUp(using: &$1) }),
        ("backup, killed", 20, { try $0.backUp(isKilled: true, using: &$1) }),
        ("prune", 8, { try $0.prune(using: &$1) }),
        ("prune, killed", 4, { try $0.prune(isKilled: true, using: &$1) }),
        ("compact", 6, { try $0.run("compact", using: &$1) }),
        ("compact, killed", 4, { try $0.run("compact", isKilled: true, using: &$1) }),
        ("repair", 6, { try $0.run("repair", using: &$1) }),
        ("copy", 6, { model, _ in try model.copy() }),
        ("merge", 6, { model, _ in try model.merge() }),
      ]
    var choice = Int.random(in: 0..<operations.reduce(0) { $0 + $1.weight }, using: &random)
    for operation in operations {
      choice -= operation.weight
      guard choice < 0 else { continue }
      last = operation.name
      // There is nothing else to do before the first backup.
      guard given.isEmpty == false || operation.name == "backup" else { return }
      counts[operation.name, default: 0] += 1
      try operation.perform(&self, &random)
      try check(isFull: random.next() % 4 == 0)
      return
    }
  }

  // MARK: Operations

  /// Changes an account on its server: puts records, equal ones among them, and deletes some.
  private func change(_ account: StandInAccount, using random: inout SeededGenerator) throws {
    var writes: [StandInAccount.Write] = []
    for _ in 0..<Int.random(in: 0...8, using: &random) {
      let key = Int.random(in: 0..<40, using: &random)
      let path = "app.bsky.feed.post/3k\(key < 10 ? "a" : "b")\(key)"
      if random.next() % 3 == 0 {
        if account.paths.contains(path) { writes.append(.delete(path: path)) }
        continue
      }
      let shown = (0..<Int.random(in: 0...2, using: &random)).compactMap { _ in
        Self.blobs.randomElement(using: &random)
      }
      let text = "text \(Int.random(in: 0..<Self.texts, using: &random))"
      writes.append(account.post(String(path.split(separator: "/")[1]), text, showing: shown))
    }
    if !writes.isEmpty { try account.commit(writes) }
  }

  private mutating func backUp(isKilled: Bool = false, using random: inout SeededGenerator) throws {
    let account = scene.accounts[Int.random(in: 0...1, using: &random)]
    try change(account, using: &random)
    let key = Key(did: account.did, rev: account.rev.text)
    given[key] = account.car()
    let with = models.map { $0.union([key]) }
    try run(
      "backup \(account.did) \(scene.flags) --into", isKilled: isKilled, leading: with,
      using: &random)
  }

  private mutating func prune(isKilled: Bool = false, using random: inout SeededGenerator) throws {
    let count = Int.random(in: 1...4, using: &random)
    let kept = models.map { model in
      Set(Dictionary(grouping: model, by: \.did).values.flatMap { $0.sorted().suffix(count) })
    }
    try run("prune --keep-last \(count)", isKilled: isKilled, leading: kept, using: &random)
  }

  private mutating func copy() throws {
    let bytes = try scene.folder.read(Self.file)
    try scene.folder.write(Self.copy, bytes)
    // What follows the last commit is not a snapshot of the copy.
    copied = models[0]
  }

  /// Merges the archive with the copy made earlier, and continues with the result.
  private mutating func merge() throws {
    guard let copied else { return }
    try expect("carpack merge \(Self.file) \(Self.copy) -o merged.car.zst", [0])
    try FileManager.default.removeItem(atPath: scene.folder.file(Self.file))
    try FileManager.default.moveItem(
      atPath: scene.folder.file("merged.car.zst"), toPath: scene.folder.file(Self.file))
    mayBeUnfinished = false
    models = models.map { $0.union(copied) }
  }

  /// Runs a verb on the archive, and kills it after a while if that is wanted.
  ///
  /// - Parameter next: the models if it succeeds; nil if it changes no snapshot.
  private mutating func run(
    _ verb: String, isKilled: Bool = false, leading next: [Set<Key>]? = nil,
    using random: inout SeededGenerator
  ) throws {
    let line = "carpack \(verb) \(Self.file)"
    guard isKilled else {
      try expect(line, [0])
      models = next ?? models
      mayBeUnfinished = mayBeUnfinished && verb != "repair"
      return
    }
    let running = try scene.command.start(line)
    pause(Double.random(in: 0...0.15, using: &random))
    running.signal(SIGKILL)
    let result = try running.wait()
    guard result.status == 137 || result.status == 0 else {
      throw Unexpected("\(line): \(result.status)\n\(result.text)\(result.errors)")
    }
    mayBeUnfinished = true
    models += next ?? []
  }

  @discardableResult
  private func expect(_ line: String, _ statuses: Set<Int32>) throws -> Command.Result {
    let result = try scene.command.run(line)
    guard statuses.contains(result.status) else {
      throw Unexpected("\(line): \(result.status)\n\(result.text)\(result.errors)")
    }
    return result
  }

  // MARK: What has to hold

  /// Compares the archive with what the server gave.
  ///
  /// - Parameter isFull: whether every snapshot's CAR is compared, not only the newest ones'.
  mutating func check(isFull: Bool) throws {
    guard FileManager.default.fileExists(atPath: scene.folder.file(Self.file)) else {
      guard models.contains([]) else { throw Unexpected("there is no archive") }
      models = [[]]
      return
    }
    let statuses: Set<Int32> = mayBeUnfinished ? [0, 10] : [0]
    let log = try expect("carpack log --json \(Self.file)", statuses)
    let entries = try log.text.split(separator: "\n").map {
      try JSONDecoder().decode(Entry.self, from: Data($0.utf8))
    }.filter(\.vouched)
    let keys = Set(entries.map { Key(did: $0.did, rev: $0.rev) })
    guard models.contains(keys) else {
      throw Unexpected("it holds \(keys.sorted()), and not one of \(models.map { $0.sorted() })")
    }
    models = [keys]
    try expect("carpack verify \(Self.file)", statuses)
    let newest = Dictionary(grouping: keys, by: \.did).compactMap { $0.value.max() }
    for entry in entries {
      let key = Key(did: entry.did, rev: entry.rev)
      guard isFull || newest.contains(key) else { continue }
      let line = "carpack extract --car --at \(entry.number) -o - \(Self.file)"
      let car = try expect(line, statuses).output
      guard car == given[key] else {
        throw Unexpected("snapshot \(entry.number) is not the CAR that the server gave")
      }
    }
  }

  private struct Unexpected: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }
}
