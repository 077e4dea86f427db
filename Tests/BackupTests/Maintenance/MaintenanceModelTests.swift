import ATProtocol
import Archive
import ArchiveTestSupport
import Copying
import Files
import Foundation
import IPLD
internal import Packing
internal import Repository
import Snapshots
import SystemPackage
import TestSupport
import Testing
import Verification

/// What archives hold, without any archive: for each snapshot its account, its time, its CAR, and
/// the blobs that were at hand.
private struct ArchiveModel {
  struct Entry: Hashable {
    let did: String
    let time: String
    let car: [UInt8]
  }

  var entries: [Entry] = []
  /// The blobs that are in the file.
  var held: Set<CID> = []

  /// Forgets, rule by rule, the way one would with a calendar in hand.
  mutating func prune(_ policy: RetentionPolicy) {
    var kept: Set<Int> = []
    for did in Set(entries.map(\.did)) {
      let mine = entries.indices.filter { entries[$0].did == did }
      kept.formUnion(mine.suffix(1))
      // Later in time is later in the file here, so the newest of a period is its last.
      kept.formUnion(mine.suffix(max(policy.last, 0)))
      for (count, length) in [(policy.daily, 10), (policy.monthly, 7), (policy.yearly, 4)]
      where count > 0 {
        var newest: [Substring: Int] = [:]
        for index in mine { newest[entries[index].time.prefix(length)] = index }
        kept.formUnion(newest.values.sorted().suffix(count))
      }
    }
    entries = entries.indices.filter(kept.contains).map { entries[$0] }
  }

  /// Drops the blobs that no snapshot refers to.
  mutating func compact() throws {
    var referenced: Set<CID> = []
    for entry in entries { referenced.formUnion(try Self.blobs(of: entry.car)) }
    held.formIntersection(referenced)
  }

  /// The blobs that the records of a CAR refer to.
  static func blobs(of car: [UInt8]) throws -> [CID] {
    try RepositoryInspection(car: car).blobs.entries.map(\.cid)
  }

  /// Takes in what another has.
  mutating func merge(_ other: ArchiveModel) {
    let known = Set(entries)
    let all = entries + other.entries.filter { !known.contains($0) }
    entries = all.enumerated().sorted {
      ($0.element.time, $0.offset) < ($1.element.time, $1.offset)
    }
    .map(\.element)
    held.formUnion(other.held)
  }
}

@Suite struct `Archives that are packed, pruned, compacted and merged at random` {
  /// An account whose repository changes at random.
  private struct Account {
    var repository: TestRepository
    var posts: [String] = []

    init(_ number: Int) throws {
      repository = try TestRepository(posts: 30)
      repository.did = "did:plc:\(String(repeating: ["a", "b", "c"][number], count: 24))"
    }

    mutating func change(_ random: inout SeededGenerator) throws -> [[UInt8]] {
      var blobs: [[UInt8]] = []
      try repository.advance()
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        let path = "app.bsky.feed.post/\(Int.random(in: 0..<100, using: &random))"
        if let old = posts.firstIndex(of: path), Bool.random(using: &random) {
          repository.remove(path)
          posts.remove(at: old)
          continue
        }
        // Of few contents, so that accounts and archives share them; some large, some not given.
        let content = UInt8.random(in: 0..<12, using: &random)
        let blob = [UInt8](repeating: content, count: content % 3 == 0 ? 70_000 : 100)
        try repository.add(path, blob: .blob(blob))
        if !posts.contains(path) { posts.append(path) }
        if content % 4 != 3 { blobs.append(blob) }
      }
      return blobs
    }
  }

  /// An archive and what it is to hold.
  private struct Pair {
    var series: Series
    var model = ArchiveModel()

    init() throws { series = try Series() }
  }

  /// How many steps a round has.
  private static let stepCount = 40

  @Test func `hold what a model holds`() throws {
    var count = 0
    for round in Torture.rounds(3, from: 0x9747_0301) {
      try run(round.random, "\(round)")
      count += Self.stepCount
    }
    Torture.report(counts: "\(count) steps")
  }

  private func run(_ random: SeededGenerator, _ round: String) throws {
    var random = random
    var accounts = try (0..<3).map { try Account($0) }
    var pairs = [try Pair(), try Pair()]
    var day = 0
    for step in 0..<Self.stepCount {
      let place = Int.random(in: 0..<2, using: &random)
      let choice = Int.random(in: 0..<10, using: &random)
      let isEmpty = pairs[place].model.entries.isEmpty
      if choice < 6 || isEmpty {
        day += Int.random(in: 0...20, using: &random)
        let number = Int.random(in: 0..<3, using: &random)
        let blobs = try accounts[number].change(&random)
        let time = Self.time(day, step)
        try pack(accounts[number].repository, blobs, at: time, into: &pairs[place], &random)
      } else if choice < 8 {
        func number() -> Int { Int.random(in: -2...3, using: &random) }
        let policy = RetentionPolicy(
          last: number(), daily: number(), monthly: number(), yearly: number())
        _ = try policy.prune(
          FileStorage.open(pairs[place].series.path), name: "a")
        pairs[place].model.prune(policy)
      } else if choice < 9 || pairs[1 - place].model.entries.isEmpty {
        _ = try ArchiveCopier().compact(pairs[place].series.path)
        try pairs[place].model.compact()
        try check(pairs[place], "step \(step), \(round)", isCompact: true)
      } else {
        let (path, other) = (pairs[place].series.path, pairs[1 - place].series.path)
        let archives = try [path, other].map {
          try SourceArchive(ArchiveReader(path: $0), name: $0.string)
        }
        _ = try ArchiveCopier().merge(archives, to: AtomicFile(path, replacing: true))
        pairs[place].model.merge(pairs[1 - place].model)
        try pairs[place].model.compact()
        try check(pairs[place], "step \(step), \(round)", isCompact: true)
      }
      if step % 10 == 9 { try check(pairs[place], "step \(step), \(round)", isCompact: false) }
    }
    for pair in pairs where !pair.model.entries.isEmpty {
      try check(pair, "at the end, \(round)", isCompact: false)
      #expect(try isAccepted(pair.series.path.string))
    }
  }

  /// A time that is the later the larger the numbers are.
  private static func time(_ day: Int, _ step: Int) -> String {
    let date = Date(
      timeIntervalSince1970: Double(1_700_000_000 / 86_400 * 86_400 + day * 86_400 + step))
    return date.formatted(.iso8601)
  }

  private func pack(
    _ repository: TestRepository, _ blobs: [[UInt8]], at time: String, into pair: inout Pair,
    _ random: inout SeededGenerator
  ) throws {
    let car =
      try Int.random(in: 0..<4, using: &random) == 0
      ? shuffled(repository.car(), using: &random) : repository.car()
    let folder = pair.series.folder
    try? FileManager.default.removeItem(atPath: folder.file("blobs"))
    let files = Dictionary(blobs.map { ("\(CID.blob($0))", $0) }) { first, _ in first }
    let report = try pair.series.pack(car, blobs: files) { $0.provenance.createdAt = time }
    if !report.isUnchanged {
      pair.model.entries.append(.init(did: repository.did, time: time, car: car))
    }
    let referenced = Set(try ArchiveModel.blobs(of: car))
    pair.model.held.formUnion(blobs.map { CID.blob($0) }.filter(referenced.contains))
  }

  private func check(_ pair: Pair, _ place: String, isCompact: Bool) throws {
    guard !pair.model.entries.isEmpty else { return }
    let reader = try pair.series.reader
    let history = try SnapshotHistory(of: reader)
    #expect(history.breaks == [], "\(place)")
    #expect(history.entries.map(\.createdAt) == pair.model.entries.map(\.time), "\(place)")
    #expect(history.entries.map(\.did.text) == pair.model.entries.map(\.did), "\(place)")
    #expect(try reader.cars() == pair.model.entries.map(\.car), "\(place)")
    let report = try SnapshotVerifier().verify(reader, .full)
    #expect(report.damage == [] && report.archive.findings == [], "\(place)")
    let contents = try reader.contents()
    #expect(contents.isSuperset(of: pair.model.held), "\(place)")
    guard isCompact else { return }
    let needs = try reader.needs(pair.model.entries.map(\.car), held: pair.model.held)
    #expect(contents == needs, "\(place)")
  }
}
