import ATProtocol
import ArchiveTestSupport
import Copying
import Foundation
import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Archive
@testable import Files
@testable import Packing
@testable import Snapshots

@Suite struct `What an earlier run has left under the temporary name` {
  private let folder: TemporaryFolder
  private let repository: TestRepository
  private let other: TestRepository
  private var path: FilePath { FilePath(folder.file("a.car.zst")) }
  private var temporary: String { folder.file(".a.car.zst.partial") }

  init() throws {
    folder = try TemporaryFolder()
    repository = try TestRepository(posts: 30)
    var other = repository
    other.did = "did:plc:z72i7hdynmk6r22z27h6tvur"
    self.other = other
  }

  /// What a backup of a repository leaves when it is interrupted after its repository has arrived,
  /// with a blob.
  private func interrupt(_ repository: TestRepository, committing: Bool) throws -> [UInt8] {
    let car = try repository.car()
    let header = try Array(car[..<CARHeader(car.span).length])
    var writer = try ArchiveWriter.open(
      FileStorage.openOrCreate(FilePath(temporary)), carHeader: header)
    for block in try repository.blocks() { try writer.append(block.cid, block.bytes.span) }
    try writer.append(.blob([1, 2, 3]), [1, 2, 3].span)
    if committing { try writer.checkpoint() } else { try writer.flush() }
    return try folder.read(".a.car.zst.partial")
  }

  @discardableResult
  private func pack(
    _ repository: TestRepository, replacing: Bool = false,
    willWrite: (FilePath) -> Void = { _ in }
  ) throws -> RepositoryPacker.Report {
    let car = try folder.write("repo.car", try repository.car())
    let options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-01-02T03:04:05Z", hostSystem: "Linux", milliseconds: { 0 })
    return try RepositoryPacker(options).pack(
      InputFile(car), folders: [], to: AtomicFile(path, replacing: replacing),
      willWrite: willWrite)
  }

  @Test(arguments: [false, true], [false, true])
  func `of another account stays, byte for byte`(isCommitted: Bool, replacing: Bool) throws {
    let left = try interrupt(other, committing: isCommitted)
    #expect(throws: BackupError.leftover(temporary, other.did)) {
      try pack(repository, replacing: replacing) { _ in Issue.record("it is not ours to remove") }
    }
    #expect(try folder.read(".a.car.zst.partial") == left)
    #expect(!AtomicFile.isTaken(path))
  }

  @Test(arguments: [false, true])
  func `of the same account is gone on with, blobs and all`(isCommitted: Bool) throws {
    _ = try interrupt(repository, committing: isCommitted)
    try pack(repository) { _ in Issue.record("what was there before is not ours to remove") }
    let reader = try ArchiveReader(path: path)
    #expect(try reader.section(of: .blob([1, 2, 3])) != nil)
    #expect(try RestoredRepository(ArchivedSnapshot.newest(in: reader)).isExact)
    #expect(!AtomicFile.isTaken(FilePath(temporary)))
  }

  @Test func `is gone on with by a later state of the account, if it is committed`() throws {
    _ = try interrupt(repository, committing: true)
    var later = repository
    later.rev = "3lscuqc52or3x"
    try later.add("a.b.c/new", ["n": .integer(1)])
    try pack(later)
    let reader = try ArchiveReader(path: path)
    #expect(try reader.section(of: .blob([1, 2, 3])) != nil)
    #expect(try RestoredRepository(ArchivedSnapshot.newest(in: reader)).isExact)
  }

  @Test func `with a finished snapshot is that snapshot, or stays`() throws {
    try pack(repository)
    try FileManager.default.moveItem(atPath: path.string, toPath: temporary)
    let left = try folder.read(".a.car.zst.partial")
    var later = repository
    try later.add("a.b.c/new", ["n": .integer(1)])
    #expect(throws: BackupError.leftover(temporary, repository.did)) { try pack(later) }
    #expect(try folder.read(".a.car.zst.partial") == left)
    #expect(try pack(repository).isUnchanged)
    #expect(try folder.read("a.car.zst") == left)
  }

  @Test func `with an index and none of what that names is replaced`() throws {
    let whole = try interrupt(other, committing: true)
    let survey = try Survey(MappedFile(copying: whole))
    var torn = whole
    for frame in survey.frames { for place in frame.offset..<frame.end { torn[Int(place)] = 0 } }
    for footer in survey.footers { for place in footer.frame.range { torn[place] = 0 } }
    try folder.write(".a.car.zst.partial", torn)
    #expect(try !pack(repository).isUnchanged)
  }

  @Test func `stays when packing fails`() throws {
    let left = try interrupt(repository, committing: true)
    let car = try folder.write("repo.car", try repository.car())
    let options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-01-02T03:04:05Z", hostSystem: "Linux", milliseconds: { 0 })
    let target = try AtomicFile(path, replacing: false)
    // Another program takes the name.
    try folder.write("a.car.zst", [9])
    #expect(throws: BackupError.system("write \(path)", EEXIST)) {
      _ = try RepositoryPacker(options).pack(InputFile(car), folders: [], to: target)
    }
    #expect(try folder.read("a.car.zst") == [9])
    #expect(try Array(folder.read(".a.car.zst.partial").prefix(left.count)) == left)
  }

  /// Packs, and returns what it said of what was there.
  private func packTelling(_ repository: TestRepository) throws -> [String] {
    var told: [String] = []
    let car = try folder.write("repo.car", try repository.car())
    let options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-01-02T03:04:05Z", hostSystem: "Linux", milliseconds: { 0 })
    _ = try RepositoryPacker(options).pack(
      InputFile(car), folders: [], to: AtomicFile(path, replacing: false),
      willReplace: { told.append($0) })
    return told
  }

  @Test func `is replaced, with a word, if a power cut has torn its first frame`() throws {
    let whole = try interrupt(repository, committing: false)
    // Frame 0 is the header, and the pack after it is longer than what was written of it.
    try #require(whole.count > 1500)
    for kept in [0, 40, 200, 512, 1024, 1536] {
      for account in [repository, other] {
        let torn = whole.prefix(kept) + [UInt8](repeating: 0, count: whole.count - kept)
        try folder.write(".a.car.zst.partial", Array(torn))
        let told = try packTelling(account)
        #expect(told.count == 1 && told[0].contains(temporary), "\(kept): \(told)")
        #expect(try RestoredRepository(.newest(in: ArchiveReader(path: path))).isExact)
        try FileManager.default.removeItem(atPath: path.string)
      }
    }
  }

  @Test func `is not thrown away if a block is whole in a frame that is torn`() throws {
    // Noise is stored as it is, so that what was written of the frame can be read.
    var random = SeededGenerator(seed: 33)
    let car = try other.car()
    let header = try Array(car[..<CARHeader(car.span).length])
    do {
      var writer = try ArchiveWriter.open(
        FileStorage.openOrCreate(FilePath(temporary)), carHeader: header)
      for _ in 0..<8 {
        let noise = random.bytes(1000)
        try writer.append(.blob(noise), noise.span)
      }
      try writer.flush()
    }
    let whole = try folder.read(".a.car.zst.partial")
    let torn = whole.prefix(4096) + [UInt8](repeating: 0, count: whole.count - 4096)
    try folder.write(".a.car.zst.partial", Array(torn))
    #expect(throws: BackupError.leftover(temporary, nil)) { try pack(repository) }
    #expect(try folder.read(".a.car.zst.partial") == Array(torn))
    // The command that was interrupted continues.
    try pack(other)
    #expect(try RestoredRepository(.newest(in: ArchiveReader(path: path))).isExact)
  }

  @Test func `is thrown away if it never was an archive`() throws {
    for bytes: [UInt8] in [[], [1, 2, 3], Array(repeating: 0, count: 5000)] {
      try folder.write(".a.car.zst.partial", bytes)
      try pack(repository)
      #expect(try RestoredRepository(.newest(in: ArchiveReader(path: path))).isExact)
      try FileManager.default.removeItem(atPath: path.string)
    }
  }

  /// What may lie under the temporary name.
  enum Left: CaseIterable {
    case nothing, empty, zeros, torn, uncommitted, interrupted, finished, unreadable

    /// Whether no run can need it.
    var isNothing: Bool {
      switch self {
      case .nothing, .empty, .zeros, .torn: true
      case .uncommitted, .interrupted, .finished, .unreadable: false
      }
    }
  }

  enum Verb: CaseIterable { case pack, merge, compact, repair, save }

  /// Leaves something under the temporary name.
  private func leave(_ left: Left) throws {
    switch left {
    case .nothing: break
    case .empty: try folder.write(".a.car.zst.partial", [])
    case .zeros: try folder.write(".a.car.zst.partial", [UInt8](repeating: 0, count: 8177))
    case .torn:
      let whole = try interrupt(repository, committing: false)
      let page = whole.prefix(512) + [UInt8](repeating: 0, count: whole.count - 512)
      try folder.write(".a.car.zst.partial", Array(page))
    case .uncommitted: _ = try interrupt(other, committing: false)
    case .interrupted: _ = try interrupt(other, committing: true)
    case .finished:
      try pack(other)
      try FileManager.default.moveItem(atPath: path.string, toPath: temporary)
    case .unreadable:
      var bytes = try interrupt(other, committing: true)
      for place in [0, 5] { bytes[place] ^= 0xff }
      try folder.write(".a.car.zst.partial", bytes)
    }
  }

  @Test(arguments: Verb.allCases, Left.allCases)
  func `is never lost to a verb that makes a file, and keeps none from it for nothing`(
    verb: Verb, left: Left
  ) throws {
    // The archive that is copied.
    try pack(repository)
    let source = FilePath(folder.file("source.car.zst"))
    try FileManager.default.moveItem(atPath: path.string, toPath: source.string)
    try leave(left)
    let before = try left == .nothing ? nil : folder.read(".a.car.zst.partial")
    func run() throws {
      if verb == .pack {
        try pack(repository)
        return
      }
      let target = try AtomicFile(path, replacing: false)
      switch verb {
      case .pack, .save: try AtomicFile.save(to: path, replacing: false) { try $0([1].span) }
      case .merge:
        let archive = try SourceArchive(ArchiveReader(path: source), name: "a")
        _ = try ArchiveCopier().merge([archive], to: target)
      case .compact: _ = try ArchiveCopier().compact(source, to: target)
      case .repair:
        let options = RepositoryPacker.Options(
          tool: "tests", createdAt: "2026-01-02T03:04:05Z", hostSystem: "Linux",
          milliseconds: { 0 })
        _ = try ArchiveCopier().salvage(
          ArchiveReader(path: source), into: target.storage(), by: options.provenance)
        try target.publishArchive()
      }
    }
    if left.isNothing {
      try run()
      #expect(AtomicFile.isTaken(path))
      if verb != .save { #expect(try !ArchiveReader(path: path).cars().isEmpty) }
    } else {
      let owner = left == .unreadable ? nil : other.did
      #expect(throws: BackupError.leftover(temporary, owner)) { try run() }
      #expect(try folder.read(".a.car.zst.partial") == before)
      #expect(!AtomicFile.isTaken(path))
    }
    let names = folder.names().filter { $0.hasSuffix(".partial") }
    #expect(names.allSatisfy { $0 == ".a.car.zst.partial" })
  }

  @Test func `stays if it is an archive that cannot be read`() throws {
    var left = try interrupt(other, committing: true)
    for place in [0, 5] { left[place] ^= 0xff }
    try folder.write(".a.car.zst.partial", left)
    #expect(throws: BackupError.self) { try pack(repository) }
    #expect(try folder.read(".a.car.zst.partial") == left)
  }
}
