import Archive
import ArchiveTestSupport
import Files
import Foundation
import IPLD
import Packing
import Snapshots
import SystemPackage
import TestSupport

/// An archive to which things are done one after the other, what is beside it on the disk, and what
/// was done so far in words.
struct SequenceArchive {
  let folder: TemporaryFolder
  var random: SeededGenerator
  var states = PackedStates()
  var account: SequenceAccount
  /// Other accounts, of which other archives are.
  private var others: [SequenceAccount]
  /// The archive.
  var file: [UInt8] = []
  /// A copy of it, made when it was whole.
  var copy: [UInt8] = []
  /// What it was some generations before, of which it is the continuation.
  var older: [UInt8] = []
  /// The account as it was then.
  private var olderAccount: SequenceAccount
  /// What was done, each in words.
  var steps: [String] = []
  /// Problems that did not stop the sequence.
  var failures: [String] = []
  /// Where archives begin that were glued after the first, which repairing may leave alone.
  var seams: [Int] = []
  /// Whether there are any.
  var isGlued: Bool { !seams.isEmpty }
  /// How many things were done of each kind, and their results.
  var counts: [String: Int] = [:]
  private var minutes = 0
  /// How much parity protects what is packed, in percent; nil for none.
  private let parity: Int?
  /// What the archives are sealed with; nil if they are not.
  let seal: TestSeal?

  /// Whether the archives are sealed: every fourth, all with `CARPACK_SEALED=1`, none with 0.
  private static func isSealed(_ seed: UInt64) -> Bool {
    switch ProcessInfo.processInfo.environment["CARPACK_SEALED"] {
    case "1": true
    case "0": false
    default: seed % 4 == 3
    }
  }

  /// An archive of one generation to eight, every third of them protected.
  init(_ random: SeededGenerator) throws {
    self.random = random
    parity = random.seed % 3 == 0 ? 5 : nil
    seal = Self.isSealed(random.seed) ? try TestSeal() : nil
    folder = try TemporaryFolder()
    account = try SequenceAccount("a", &self.random)
    olderAccount = account
    others = [try SequenceAccount("b", &self.random), try SequenceAccount("c", &self.random)]
    let count = 1 + Int(self.random.next() % 8)
    let place = Int(self.random.next() % UInt64(count))
    var states: [(bytes: [UInt8], account: SequenceAccount)] = []
    (file, account) = try build(account, generations: count) { states.append(($0, $1)) }
    (older, olderAccount) = states[place]
    copy = self.random.next() % 3 == 0 ? older : file
    steps.append(
      "\(seal == nil ? "an archive" : "a sealed archive") of \(count) generations, \(file.count) bytes; the copy has \(copy.count), the older piece \(older.count)"
    )
  }

  /// Packs this many states into a new archive.
  ///
  /// - Returns: The archive, and the account as it is then.
  private mutating func build(
    _ account: SequenceAccount, generations: Int,
    _ note: ([UInt8], SequenceAccount) -> Void = { _, _ in }
  ) throws -> ([UInt8], SequenceAccount) {
    var account = account
    let storage = MemoryStorage()
    for number in 0..<generations {
      let isFill = number > 0 && account.hasLate && random.next() % 4 == 0
      let state = try isFill ? account.filled() : account.next(&random)
      try prepare(state)
      try pack(
        state, into: seal?.archive(in: storage) ?? storage, options(startsOver: number == 0))
      note(storage.bytes, account)
    }
    return (storage.bytes, account)
  }

  /// An archive of another account, which goes on from one archive to the next.
  mutating func otherArchive() throws -> [UInt8] {
    let place = Int(random.next() % 2)
    let count = 1 + Int(random.next() % 3)
    let (bytes, other) = try build(others[place], generations: count)
    others[place] = other
    return bytes
  }

  /// Another continuation of the older piece, by one to three states of its account or of another.
  mutating func branch() throws -> [UInt8] {
    let storage = MemoryStorage(older)
    try olderAccount.diverge()
    defer { account.follow(olderAccount) }
    for _ in 0...Int(random.next() % 3) {
      let isOther = random.next() % 4 == 0
      let state =
        try isOther ? others[0].next(&random) : olderAccount.next(&random)
      try prepare(state)
      var options = options()
      options.sharesArchive = true
      try pack(state, into: storage, options)
    }
    return storage.bytes
  }

  /// Whether the file is sealed and has lost its keys, so that nothing in it can be read.
  var isUnopenable: Bool {
    guard seal != nil else { return false }
    do {
      _ = try TestSeal.plain(file)
      return false
    } catch {
      return true
    }
  }

  // MARK: Packing

  /// Prepares a state for packing: records its CAR, and puts its blobs into the folder.
  mutating func prepare(_ state: SequenceAccount.State) throws {
    try states.note(state.car)
    minutes += 1
    let blobs = folder.file("blobs")
    if FileManager.default.fileExists(atPath: blobs) {
      try FileManager.default.removeItem(atPath: blobs)
    }
    try FileManager.default.createDirectory(atPath: blobs, withIntermediateDirectories: true)
    for (number, blob) in state.blobs.enumerated() { try folder.write("blobs/\(number)", blob) }
  }

  /// How a state is packed now.
  func options(startsOver: Bool = false) -> RepositoryPacker.Options {
    let time = Date(timeIntervalSince1970: 1_750_000_000 + 60 * Double(minutes))
    var options = RepositoryPacker.Options(
      tool: "tests", createdAt: time.formatted(.iso8601), hostSystem: "Linux",
      milliseconds: { 0 })
    options.startsOver = startsOver
    options.parity = parity
    return options
  }

  /// Packs a state that was prepared.
  func pack(
    _ state: SequenceAccount.State, into storage: any ArchiveStorage,
    _ options: RepositoryPacker.Options
  ) throws {
    _ = try RepositoryPacker(options).pack(
      InputFile(MappedFile(copying: state.car), named: "repo.car"),
      folders: [BlobFolder(folder.file("blobs"))], into: storage)
  }
}
