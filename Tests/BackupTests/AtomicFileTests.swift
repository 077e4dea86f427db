import Archive
import Copying
import Files
import Foundation
import LibC
import Packing
import Snapshots
import SystemPackage
import TestSupport
import Testing

@Suite struct `A new archive's file` {
  private let folder: TemporaryFolder
  private var path: FilePath { FilePath(folder.file("a.car.zst")) }

  init() throws { folder = try TemporaryFolder() }

  /// The names of all files in the folder.
  private var names: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() }
  }

  @Test func `is locked until it has its name, whoever has let go of the storage`() throws {
    let target = try AtomicFile(path, replacing: false)
    try target.storage { _ in true }.storage.write([1, 2, 3].span, at: 0)
    for replacing in [false, true] {
      let other = try AtomicFile(path, replacing: replacing)
      #expect(throws: ArchiveError(.locked)) { _ = try other.storage() }
      #expect(throws: ArchiveError(.locked)) { _ = try other.storage { _ in true } }
    }
    #expect(throws: ArchiveError(.locked)) { _ = try FileStorage.open(target.temporaryPath) }
    try target.publish()
    #expect(try names == ["a.car.zst"])
    #expect(try folder.read("a.car.zst") == [1, 2, 3])
    // From here on others may write to it.
    _ = try FileStorage.open(path)
  }

  @Test func `is not begun under a name that another run has taken meanwhile`() throws {
    let (winner, loser) = (
      try AtomicFile(path, replacing: false), try AtomicFile(path, replacing: false)
    )
    try winner.storage().write([1].span, at: 0)
    try winner.publish()
    #expect(throws: BackupError.system("write \(path)", EEXIST)) { _ = try loser.storage() }
    #expect(try names == ["a.car.zst"])
    #expect(try folder.read("a.car.zst") == [1])
  }

  @Test func `does not take the place of a file that has come to be there`() throws {
    let target = try AtomicFile(path, replacing: false)
    try target.storage().write([1].span, at: 0)
    try folder.write("a.car.zst", [2])
    #expect(throws: BackupError.system("write \(path)", EEXIST)) { try target.publish() }
    #expect(try names == ["a.car.zst"])
    #expect(try folder.read("a.car.zst") == [2])
  }

  @Test(arguments: [false, true])
  func `has no name that a kill could leave`(replacing: Bool) throws {
    if replacing { try folder.write("a.car.zst", [1]) }
    let before = try names
    let target = try AtomicFile(path, replacing: replacing)
    let storage = try target.storage()
    try storage.write([2, 3].span, at: 0)
    #expect(try names == before)
    try target.publish()
    #expect(try names == ["a.car.zst"])
    #expect(try folder.read("a.car.zst") == [2, 3])
  }

  @Test func `is the key's owner's alone, and takes no other's place`() throws {
    try AtomicFile.save(to: path, replacing: false, isPrivate: true) { try $0([1].span) }
    #expect(try mode(path) == 0o600)
    #expect(throws: BackupError.system("write \(path)", EEXIST)) {
      try AtomicFile.save(to: path, replacing: false, isPrivate: true) { try $0([2].span) }
    }
    #expect(try AtomicFile.read(path) == [1])
    // A journal that others could read by mistake becomes private again.
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path.string)
    try AtomicFile.save(to: path, replacing: true, isPrivate: true) { try $0([3].span) }
    #expect(try mode(path) == 0o600)
    #expect(try AtomicFile.read(path) == [3])
    #expect(try names == ["a.car.zst"])
  }

  @Test func `does not take a name beside a backup that has begun meanwhile`() throws {
    let (copy, backup) = (
      try AtomicFile(path, replacing: false), try AtomicFile(path, replacing: false)
    )
    try copy.storage().write([1].span, at: 0)
    _ = try backup.storage { _ in true }
    #expect(throws: ArchiveError(.locked)) { try copy.publish() }
    #expect(try names == [".a.car.zst.partial"])
  }

  @Test func `and all temporary ones are closed in a program that is started`() throws {
    let target = try AtomicFile(path, replacing: false)
    let storage = try target.storage()
    let temporary = try TemporaryFile(in: FilePath(folder.path))
    let copy = try temporary.duplicate()
    defer { try? copy.close() }
    let opened = [storage.openPath, temporary.path].compactMap {
      $0.lastComponent.flatMap { CInt($0.string) }
    }
    #expect(opened.count == 2)
    for descriptor in opened + [copy.rawValue] {
      #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
    }
  }

  private func mode(_ path: FilePath) throws -> Int {
    var status = LibC.stat()
    let code = unsafe stat(path.string, &status)
    try #require(code == 0)
    return Int(status.st_mode & 0o777)
  }

  @Test(arguments: [0o600, 0o640, 0o400])
  func `is as private from the start as the file it replaces`(mode: Int) throws {
    try folder.write("a.car.zst", [1])
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path.string)
    let target = try AtomicFile(path, replacing: true)
    _ = try target.storage()
    #expect(try self.mode(target.temporaryPath) & ~mode & 0o077 == 0)
    target.discard()
    // What a killed run of an earlier version has left is readable by all users.
    try folder.write(".a.car.zst.partial", [1])
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o644], ofItemAtPath: target.temporaryPath.string)
    _ = try target.storage()
    #expect(try self.mode(target.temporaryPath) & ~mode & 0o077 == 0)
  }

  @Test func `is readable as the umask says, where nothing is replaced`() throws {
    let target = try AtomicFile(path, replacing: false)
    let storage = try target.storage()
    let mask = umask(0)
    _ = umask(mask)
    #expect(try mode(storage.openPath) == 0o644 & ~Int(mask))
  }

  @Test func `of a private archive that is compacted is private all the time`() throws {
    var series = try Series()
    for posts in [10, 20, 30] { try series.pack(TestRepository(posts: posts).car()) }
    _ = try RetentionPolicy(last: 1).prune(
      FileStorage.open(series.path), name: "a")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o600], ofItemAtPath: series.path.string)
    var modes: [Int?] = []
    let report = try ArchiveCopier().compact(series.path) { modes.append(try? mode($0)) }
    #expect(report.isReplaced)
    #expect(modes == [0o600])
    #expect(try mode(series.path) == 0o600)
  }

  private func makePipe(_ path: String) throws {
    let status = unsafe mkfifo(path, 0o600)
    try #require(status == 0)
  }

  @Test(arguments: [false, true])
  func `takes the place of a plain file only`(replacing: Bool) throws {
    try folder.write("precious", [1])
    try FileManager.default.createDirectory(
      atPath: folder.file("folder"), withIntermediateDirectories: false)
    for (link, target) in [("link", "precious"), ("dangling", "nothing"), ("up", "folder")] {
      try FileManager.default.createSymbolicLink(
        atPath: folder.file(link), withDestinationPath: folder.file(target))
    }
    try makePipe(folder.file("fifo"))
    let before = try names
    for (name, kind) in [
      ("folder", "a folder"), ("link", "a symbolic link"), ("dangling", "a symbolic link"),
      ("up", "a symbolic link"), ("fifo", "a named pipe"),
    ] {
      let path = FilePath(folder.file(name))
      #expect(throws: BackupError.notAFile(path.string, kind)) {
        _ = try AtomicFile(path, replacing: replacing)
      }
    }
    #expect(throws: BackupError.notAFile("/dev/null", "a device")) {
      _ = try AtomicFile("/dev/null", replacing: replacing)
    }
    // One that takes the name after the first look is refused, too.
    let target = try AtomicFile(path, replacing: replacing)
    _ = try target.storage()
    try makePipe(path.string)
    #expect(throws: BackupError.self) { try target.publish() }
    #expect(try names == (before + ["a.car.zst"]).sorted())
  }

  @Test func `is given out again by nobody when it is discarded`() throws {
    let target = try AtomicFile(path, replacing: false)
    _ = try target.storage()
    target.discard()
    #expect(try names == [])
    let other = try AtomicFile(path, replacing: false)
    _ = try other.storage { _ in true }
    target.discard()
    #expect(try names == [".a.car.zst.partial"])
  }

  @Test func `is never a link that somebody has put in its place`() throws {
    try folder.write("precious", [1])
    let target = try AtomicFile(path, replacing: false)
    try FileManager.default.createSymbolicLink(
      atPath: target.temporaryPath.string, withDestinationPath: folder.file("precious"))
    #expect(throws: ArchiveError.self) { _ = try target.storage() }
    #expect(try folder.read("precious") == [1])
  }

  @Test func `comes of packing one account at a time, and is never another's`() throws {
    var other = try TestRepository(posts: 20)
    other.did = "did:plc:z72i7hdynmk6r22z27h6tvur"
    let cars = [
      try folder.write("one.car", try TestRepository(posts: 20).car()),
      try folder.write("two.car", try other.car()),
    ]
    func pack(_ car: String, _ target: AtomicFile) throws {
      let options = RepositoryPacker.Options(
        tool: "tests", createdAt: "2026-01-02T03:04:05Z", hostSystem: "Linux",
        milliseconds: { 0 })
      _ = try RepositoryPacker(options).pack(InputFile(car), folders: [], to: target)
    }
    for replacing in [false, true] {
      let targets = try cars.map { _ in try AtomicFile(path, replacing: replacing) }
      try pack(cars[0], targets[0])
      let first = try folder.read("a.car.zst")
      if replacing {
        try pack(cars[1], targets[1])
        #expect(try folder.read("a.car.zst") != first)
      } else {
        #expect(throws: BackupError.system("write \(path)", EEXIST)) {
          try pack(cars[1], targets[1])
        }
        #expect(try folder.read("a.car.zst") == first)
      }
      #expect(try names == ["a.car.zst", "one.car", "two.car"])
    }
  }
}
