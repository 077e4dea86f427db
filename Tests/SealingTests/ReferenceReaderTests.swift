import Age
import Archive
import ArchiveTestSupport
import Foundation
import IPLD
import TestSupport
import Testing

@testable import Sealing

/// A program, run to its end.
private func run(_ program: [String]) throws -> (status: Int32, output: [UInt8]) {
  let process = Process()
  process.executableURL = URL(filePath: "/usr/bin/env")
  process.arguments = program
  let stdout = Pipe()
  process.standardInput = FileHandle.nullDevice
  process.standardOutput = stdout
  process.standardError = FileHandle.nullDevice
  try process.run()
  let output = try stdout.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  return (process.terminationStatus, [UInt8](output))
}

/// The scripts that read sealed archives with nothing of this package.
private enum Script {
  static let python = ProcessInfo.processInfo.environment["CLIENT_PYTHON"] ?? "python3"
  static let hasPyrage = (try? run([python, "-c", "import pyrage"]))?.status == 0
  static let noPyrage: Comment = "the Python that CLIENT_PYTHON names has no pyrage"
  static let hasAge = (try? run(["age", "--version"]))?.status == 0
  static let noAge: Comment = "the program age is not installed"

  static func path(_ name: String) -> String {
    URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Scripts/\(name)")
      .standardizedFileURL.path
  }
}

@Suite struct `A sealed archive in thirty years` {
  private let folder: TemporaryFolder
  private let owner: Owner
  private var key: String { folder.file("key") }
  private var sealed: String { folder.file("sealed") }

  init() throws {
    (folder, owner) = (try TemporaryFolder(), try Owner())
    let text = owner.identity.text.withBytes { bytes in bytes.array(0..<bytes.count) }
    try Data(Array("# a key\n".utf8) + text + [10]).write(to: URL(filePath: key))
  }

  /// An archive, plain and sealed, in one of the ways in which they come to be.
  private func archive(_ random: inout SeededGenerator) throws -> (plain: [UInt8], sealed: [UInt8])
  {
    let steps = (0..<Int.random(in: 1...4, using: &random)).map { _ in
      random.next() % 8 == 0
        ? BackupStep.full(using: &random) : BackupStep.tiny(using: &random)
    }
    let plain = try plainArchive(steps)
    if random.next() % 2 == 0 {
      let piece = [700, 5000, 65_536, 1 << 20].randomElement(using: &random) ?? 700
      return (plain, try owner.sealed(plain, piece: piece, committing: 3))
    }
    let file = SimpleStorage()
    _ = try owner.create(in: file)
    for step in steps { try step.perform(on: owner.open(file)) }
    if random.next() % 2 == 0 {
      var keys = try SealedKeys(file, owner.ring)
      try keys.add(Owner().recipient)
    }
    return (plain, file.bytes)
  }

  @Test(.enabled(if: Script.hasPyrage, Script.noPyrage))
  func `is read by a script that knows the format and pyrage alone`() throws {
    var count = 0
    for var round in Torture.rounds(200, from: 0x5eaa_0000) {
      count += 1
      let (plain, bytes) = try archive(&round.random)
      try Data(bytes).write(to: URL(filePath: sealed))
      let output = folder.file("plain")
      let status = try run([Script.python, Script.path("unseal.py"), key, sealed, output]).status
      #expect(status == 0, "\(round)")
      let isSame = try [UInt8](Data(contentsOf: URL(filePath: output))) == plain
      #expect(isSame, "\(round)")
    }
    Torture.report(counts: "\(count) archives")
  }

  @Test(.enabled(if: Script.hasAge, Script.noAge))
  func `is read by a shell and age alone`() throws {
    for var round in Torture.rounds(4, from: 0x5eab_0000) {
      let (plain, whole) = try archive(&round.random)
      var bytes = whole
      // One of the key frames may be damaged.
      if round.number % 2 == 1 { bytes[100] ^= 1 }
      try Data(bytes).write(to: URL(filePath: sealed))
      let (status, output) = try run(["sh", Script.path("unseal.sh"), key, sealed])
      #expect(status == 0, "\(round)")
      #expect(output == plain, "\(round)")
    }
  }

  @Test(.enabled(if: Script.hasAge, Script.noAge))
  func `is not read with another key`() throws {
    try Data(try Owner().sealed([1, 2, 3])).write(to: URL(filePath: sealed))
    #expect(try run(["sh", Script.path("unseal.sh"), key, sealed]).status == 1)
  }

  @Test func `is passed over by zstd`() throws {
    try Data(try owner.sealed([UInt8](repeating: 8, count: 9000), piece: 1000, committing: 3))
      .write(to: URL(filePath: sealed))
    #expect(try ZstdProgram.decompress(sealed) == [])
  }
}
