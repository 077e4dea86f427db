import Archive
import Foundation
import IPLD
import TestSupport
import Testing

@Suite struct `A file that zstd or gzip compressed` {
  /// What the programs make of a content: gzip, zstd, and zstd with a long window.
  private static let programs = [
    "gzip -c", "zstd -qc", "zstd -qc --long=27", "zstd -qc --format=gzip",
  ]

  private static func compressed(_ content: [UInt8], by program: String) throws -> [UInt8] {
    let folder = try TemporaryFolder()
    try folder.write("content", content)
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", "\(program) content > compressed"]
    process.currentDirectoryURL = URL(filePath: folder.path)
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
    return try folder.read("compressed")
  }

  private static func decompressed(_ bytes: [UInt8], limit: UInt64 = 1 << 30) throws -> [UInt8] {
    var content: [UInt8] = []
    let found = CompressedStream(bytes.span)
    let form = try #require(found)
    try form.decompress(bytes.span, limit: limit) { content += $0.array }
    return content
  }

  @Test(arguments: programs) func `comes back as it was`(program: String) throws {
    var random = SeededGenerator(printing: 0x5eed_0c01)
    for length in [0, 1, 1000, 262_143, 262_144, 262_145, 3_000_000] {
      let content = random.text(length)
      #expect(try Self.decompressed(Self.compressed(content, by: program)) == content)
    }
  }

  @Test(arguments: programs) func `may be several, one behind the other`(program: String) throws {
    let one = try Self.compressed(Array("one".utf8), by: program)
    let two = try Self.compressed(Array("two".utf8), by: program)
    #expect(try Self.decompressed(one + two) == Array("onetwo".utf8))
  }

  @Test(arguments: programs) func `is refused wherever it is cut off`(program: String) throws {
    let bytes = try Self.compressed(Array("a text of some length".utf8), by: program)
    for length in 4..<bytes.count {
      #expect(throws: CompressedStreamError.truncated, "\(length) of \(bytes.count)") {
        try Self.decompressed(Array(bytes.prefix(length)))
      }
    }
  }

  @Test(arguments: programs) func `is refused with something else behind it`(program: String) throws
  {
    let bytes = try Self.compressed(Array("text".utf8), by: program)
    #expect(throws: CompressedStreamError.self) { try Self.decompressed(bytes + [0, 1, 2, 3, 4]) }
  }

  @Test(arguments: programs) func `never gives a wrong byte, whichever is inverted`(program: String)
    throws
  {
    let content = Array("a text that is checked by a checksum, a text that is checked".utf8)
    let bytes = try Self.compressed(content, by: program)
    for index in 4..<bytes.count {
      var damaged = bytes
      damaged[index] ^= 0xff
      do {
        // In the header of gzip, name and time have no checksum.
        #expect(try Self.decompressed(damaged) == content, "byte \(index)")
      } catch is CompressedStreamError {}
    }
  }

  @Test(arguments: programs) func `with more content than is allowed is given up`(program: String)
    throws
  {
    let bytes = try Self.compressed([UInt8](repeating: 0, count: 10_000_000), by: program)
    #expect(throws: CompressedStreamError.tooLong(limit: 1_000_000)) {
      try Self.decompressed(bytes, limit: 1_000_000)
    }
    #expect(try Self.decompressed(bytes, limit: 10_000_000).count == 10_000_000)
  }

  @Test func `is told by its first bytes`() {
    for bytes: [UInt8] in [[], [0x1f], [0x1f, 0x8b], [0x28, 0xb5, 0x2f], [0x3a, 0xa2, 0x65]] {
      #expect(CompressedStream(bytes.span) == nil)
    }
  }
}
