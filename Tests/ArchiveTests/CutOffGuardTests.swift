import Foundation
import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Archive

@Suite struct `A mapped file that is cut off under a reader` {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    CutOffGuard.install()
  }

  private func map(_ name: String) throws -> (MappedFile, path: FilePath) {
    let path = FilePath(folder.file(name))
    try Data(repeating: 7, count: 1 << 20).write(to: URL(filePath: path.string))
    return (try MappedFile(path), path)
  }

  private func cut(_ path: FilePath, to length: Int64) throws {
    let descriptor = try FileDescriptor.open(path, .writeOnly)
    try descriptor.closeAfter { try descriptor.resize(to: length) }
  }

  @Test func `reads as zeros from there on, and says so; others do not`() throws {
    let (file, path) = try map("cut")
    let (other, _) = try map("whole")
    try cut(path, to: 100_000)
    #expect(file.withBytes { $0[0] } == 7)
    try file.checkFetched()
    #expect(file.withBytes { $0[$0.count - 1] } == 0)
    #expect(throws: FetchFailure.self) { try file.checkFetched() }
    // What lies before the place that was touched, and is gone as well.
    #expect(file.withBytes { $0[500_000] } == 0)
    #expect(file.withBytes { $0[0] } == 7)
    #expect(file.isCutOff && !other.isCutOff)
    #expect(other.withBytes { $0[$0.count - 1] } == 7)
    try other.checkFetched()
  }

  @Test func `leaves nothing behind for the file that is mapped next`() throws {
    for number in 0..<3 {
      let (file, path) = try map("\(number)")
      #expect(!file.isCutOff)
      try cut(path, to: 0)
      #expect(file.withBytes { $0[0] } == 0)
      #expect(file.isCutOff)
    }
  }

  @Test func `makes each read of an archive an error that says nothing of its content`() throws {
    var generator = SeededGenerator(printing: 1)
    let sample = try SampleArchive(
      in: folder, bodies: (0..<4).map { _ in generator.bytes(2 << 20) })
    let reader = try ArchiveReader(path: sample.path)
    let (first, last) = (sample.sections[0].cid, sample.sections[3].cid)
    guard var cursor = try reader.body(of: first, from: 0) else {
      Issue.record("the section is not there")
      return
    }
    let piece = try cursor.next(upTo: 1000) { $0.array }
    #expect(piece == Array(sample.sections[0].body.prefix(1000)))
    try cut(sample.path, to: 100_000)
    #expect(throws: FetchFailure.self) {
      while let _: Void = try cursor.next(upTo: 100_000, { _ in }) {}
    }
    for cid in [first, last] {
      #expect(throws: FetchFailure.self) { try reader.read(cid) { _ in } }
    }
    #expect(reader.isCutOff)
    // One that is opened now knows what is left.
    #expect(try !ArchiveReader(path: sample.path).read(last) { _ in })
  }

  @Test func `ends no process that opens, reads or surveys it, at whatever moment that is`() throws
  {
    var generator = SeededGenerator()
    let lines = Array(String(repeating: "the same line again\n", count: 20_000).utf8)
    let sample = try SampleArchive(
      in: folder, bodies: [generator.bytes(300_000), lines, [7], generator.bytes(3000)])
    let whole = try Data(contentsOf: URL(filePath: sample.path.string))
    let rounds = ProcessInfo.processInfo.environment["CARPACK_CUTS"].flatMap { Int($0) } ?? 100
    for _ in 0..<rounds {
      try whole.write(to: URL(filePath: sample.path.string))
      let pause = UInt32.random(in: 0..<5000, using: &generator)
      let length = Int64.random(in: 0..<Int64(whole.count), using: &generator)
      let isCut = DispatchGroup()
      DispatchQueue.global().async(group: isCut) {
        usleep(pause)
        #expect(throws: Never.self) { try cut(sample.path, to: length) }
      }
      var isOver = false
      while !isOver {
        isOver = isCut.wait(timeout: .now()) == .success
        do {
          let reader = try ArchiveReader(path: sample.path)
          for (cid, body) in sample.sections {
            var found: [UInt8] = []
            let isThere = try reader.read(cid) { found.append($0) }
            let isRight = found == body
            #expect(isRight || !isThere)
          }
          _ = try reader.surveyed()
        } catch {
          // It was cut off.
        }
      }
    }
  }
}
