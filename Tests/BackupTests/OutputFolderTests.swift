import Files
import Foundation
import TestSupport
import Testing

@testable import Extraction

@Suite struct `A folder that is written into` {
  private struct Broken: Error {}
  private enum Outcome { case written, alreadyThere }

  private func write(
    _ content: String, to components: [String], in folder: OutputFolder, durably: Bool = true
  ) throws -> Outcome {
    let (bytes, before) = (Array(content.utf8), folder.tally)
    let file = OutputFile(components: components, isDurable: durably)
    try folder.put(file) { sink in try sink(bytes.span) }
    #expect(
      folder.tally.written + folder.tally.alreadyThere == before.written + before.alreadyThere + 1)
    return folder.tally.written > before.written ? .written : .alreadyThere
  }

  @Test func `gets files in folders in folders`() throws {
    let temporary = try TemporaryFolder()
    let folder = try OutputFolder(temporary.file("a/b/out"))
    #expect(try write("one", to: ["x"], in: folder) == .written)
    #expect(try write("two", to: ["d", "e", "f"], in: folder) == .written)
    #expect(temporary.names() == ["a/b/out/d/e/f", "a/b/out/x"])
    #expect(try temporary.read("a/b/out/d/e/f") == Array("two".utf8))
    #expect((folder.tally.written, folder.tally.bytes, folder.tally.alreadyThere) == (2, 6, 0))
  }

  @Test(arguments: ["..", ".", "", "a/b", "/etc/passwd", "../x", "a\0b", "\0", "/"])
  func `refuses names that lead elsewhere, wherever they stand`(name: String) throws {
    let temporary = try TemporaryFolder()
    let folder = try OutputFolder(temporary.file("out"))
    for components in [[name], ["d", name], [name, "x"], ["d", name, "x"]] {
      #expect(throws: BackupError.hostileName(name)) { try write("x", to: components, in: folder) }
    }
    #expect(throws: BackupError.self) { try write("x", to: [], in: folder) }
    #expect(temporary.names() == [])
  }

  @Test func `refuses names that are too long, and takes the longest`() throws {
    let temporary = try TemporaryFolder()
    let folder = try OutputFolder(temporary.path)
    let longest = String(repeating: "n", count: 255)
    #expect(try write("x", to: [longest], in: folder) == .written)
    #expect(throws: BackupError.hostileName(longest + "n")) {
      try write("x", to: [longest + "n"], in: folder)
    }
  }

  @Test(arguments: [true, false])
  func `is never left through a symbolic link`(durably: Bool) throws {
    let temporary = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: temporary.file("outside"), withIntermediateDirectories: true)
    let folder = try OutputFolder(temporary.file("out"), overwriting: true)
    try FileManager.default.createSymbolicLink(
      atPath: temporary.file("out/link"), withDestinationPath: temporary.file("outside"))
    try FileManager.default.createSymbolicLink(
      atPath: temporary.file("out/file"), withDestinationPath: temporary.file("outside/target"))
    #expect(throws: BackupError.inTheWay(temporary.file("out/link"))) {
      try write("x", to: ["link", "x"], in: folder, durably: durably)
    }
    #expect(throws: BackupError.inTheWay(temporary.file("out/file"))) {
      try write("x", to: ["file"], in: folder, durably: durably)
    }
    #expect(temporary.names(under: "outside") == [])
    #expect(temporary.names(under: "out") == ["file", "link"])
  }

  @Test(arguments: [true, false])
  func `keeps a file that is the same, and refuses one that differs`(durably: Bool) throws {
    let temporary = try TemporaryFolder()
    let folder = try OutputFolder(temporary.path)
    for content in ["", "content", String(repeating: "long ", count: 100_000)] {
      let name = "file \(content.count)"
      #expect(try write(content, to: [name], in: folder, durably: durably) == .written)
      let before = try FileManager.default.attributesOfItem(atPath: temporary.file(name))
      #expect(try write(content, to: [name], in: folder, durably: durably) == .alreadyThere)
      let after = try FileManager.default.attributesOfItem(atPath: temporary.file(name))
      #expect(before[.systemFileNumber] as? Int == after[.systemFileNumber] as? Int)
      #expect(throws: BackupError.fileDiffers(temporary.file(name))) {
        try write(content + "!", to: [name], in: folder, durably: durably)
      }
      #expect(try temporary.read(name) == Array(content.utf8))
    }
    #expect(temporary.names().count == 3)
    #expect(folder.tally.alreadyThere == 3)
  }

  @Test(arguments: [true, false])
  func `replaces a file that differs when that was asked for`(durably: Bool) throws {
    let temporary = try TemporaryFolder()
    let folder = try OutputFolder(temporary.path, overwriting: true)
    #expect(try write("old", to: ["x"], in: folder, durably: durably) == .written)
    #expect(try write("new", to: ["x"], in: folder, durably: durably) == .written)
    #expect(try temporary.read("x") == Array("new".utf8))
  }

  @Test func `shows nothing of a file that does not get ready`() throws {
    let temporary = try TemporaryFolder()
    let folder = try OutputFolder(temporary.path, overwriting: true)
    #expect(try write("old", to: ["kept"], in: folder) == .written)
    for name in ["kept", "new"] {
      #expect(throws: Broken.self) {
        try folder.put(OutputFile(components: [name])) { sink in
          let bytes = [UInt8](repeating: 7, count: 1 << 18)
          try sink(bytes.span)
          #expect(!temporary.names().contains("new"))
          throw Broken()
        }
      }
    }
    #expect(temporary.names() == ["kept"])
    #expect(try temporary.read("kept") == Array("old".utf8))
  }

  @Test(arguments: [true, false])
  func `says what is in the way`(durably: Bool) throws {
    let temporary = try TemporaryFolder()
    let folder = try OutputFolder(temporary.path, overwriting: true)
    #expect(try write("x", to: ["d", "x"], in: folder, durably: durably) == .written)
    #expect(throws: BackupError.inTheWay(temporary.file("d"))) {
      try write("x", to: ["d"], in: folder, durably: durably)
    }
    #expect(throws: BackupError.inTheWay(temporary.file("d/x"))) {
      try write("x", to: ["d", "x", "y"], in: folder, durably: durably)
    }
    #expect(throws: BackupError.self) { _ = try OutputFolder(temporary.file("d/x")) }
  }

  @Test func `does not run out of descriptors, however many folders there are`() throws {
    let temporary = try TemporaryFolder()
    let folder = try OutputFolder(temporary.path)
    for number in 0..<1500 {
      #expect(try write("x", to: ["a\(number % 3)", "b\(number)", "x"], in: folder) == .written)
    }
    #expect(temporary.names().count == 1500)
  }
}
