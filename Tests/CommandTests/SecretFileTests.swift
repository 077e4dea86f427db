import Foundation
import IPLD
import Keys
import LibC
import TestSupport
import Testing

/// Pipes and devices in the place of a file with a key.
@Suite struct `A file with a secret` {
  private let folder: TemporaryFolder
  private let pipe: String

  init() throws {
    folder = try TemporaryFolder()
    pipe = folder.file("pipe")
    #expect(unsafe mkfifo(pipe, 0o600) == 0)
  }

  /// What a file holds, or how many bytes were read if that is more than the limit.
  private static func read(
    _ path: String, limit: Int = 100, within wait: Duration = .seconds(30)
  ) throws -> String {
    try SecretFile.read(path, limit: limit, until: .now + wait) { bytes in
      bytes.count > limit ? "\(bytes.count) bytes" : String(decoding: bytes.array, as: UTF8.self)
    }
  }

  /// Writes to the pipe from another thread.
  private func write(_ parts: [String], pausing pause: Duration = .zero) {
    Thread.detachNewThread { [pipe] in
      guard let file = FileHandle(forWritingAtPath: pipe) else { return }
      for part in parts {
        Thread.sleep(forTimeInterval: pause / .seconds(1))
        file.write(Data(part.utf8))
      }
      file.closeFile()
    }
  }

  @Test func `is read whole`() throws {
    try folder.write("key", Array("secret".utf8))
    #expect(try Self.read(folder.file("key")) == "secret")
    try folder.write("empty", [])
    #expect(try Self.read(folder.file("empty")) == "")
    #expect(try Self.read("/dev/null") == "")
  }

  @Test func `may be a pipe whose writer comes late, and writes in parts`() throws {
    write(["sec", "ret"], pausing: .milliseconds(250))
    #expect(try Self.read(pipe) == "secret")
  }

  @Test func `is not waited for without end`() throws {
    let start = ContinuousClock.now
    #expect {
      try Self.read(pipe, within: .milliseconds(300))
    } throws: { "\($0)".contains("no program wrote to it and closed it") }
    // A writer that stays does not end it, either.
    let writer = unsafe open(pipe, O_RDWR)
    defer { close(writer) }
    #expect(unsafe LibC.write(writer, "sec", 3) == 3)
    #expect {
      try Self.read(pipe, within: .milliseconds(300))
    } throws: { "\($0)".contains("no program wrote to it and closed it") }
    #expect(ContinuousClock.now - start < .seconds(10))
  }

  @Test func `ends its wait when the task is cancelled`() async throws {
    let task = Task.detached { [pipe] in try Self.read(pipe, within: .seconds(60)) }
    try await Task.sleep(for: .milliseconds(200))
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func `is read up to a byte beyond the limit`() throws {
    #expect(try Self.read("/dev/zero", limit: 1000) == "1001 bytes")
    try folder.write("key", [UInt8](repeating: 65, count: 300))
    #expect(try Self.read(folder.file("key"), limit: 299) == "300 bytes")
    #expect(try Self.read(folder.file("key"), limit: 300).count == 300)
  }

  @Test func `is an error if it cannot be read`() throws {
    #expect { try Self.read(folder.file("none")) } throws: { "\($0)".contains("could not read") }
    #expect { try Self.read(folder.file("")) } throws: { "\($0)".contains("could not read") }
  }
}
