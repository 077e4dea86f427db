import Archive
import IPLD
import Synchronization
import SystemPackage
import TestSupport
import Testing
import XRPC

@testable import Backup

@Suite struct `A sink for a repository` {
  private let folder: TemporaryFolder
  private let head = HTTPResponse(status: 200, url: "https://pds.test")

  init() throws { folder = try TemporaryFolder() }

  private func sink() -> RepositorySink {
    RepositorySink(folder: FilePath(folder.path), arrived: { _ in })
  }

  private func give(_ bytes: [UInt8], to sink: RepositorySink, chunk: Int = 1000) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(chunk))
      #expect(try sink.take(piece.span) == .proceed)
      rest = rest.dropFirst(piece.count)
    }
  }

  @Test func `has the CAR as it came, in a file without a name`() throws {
    let car = try TestRepository(posts: 50).car()
    let sink = sink()
    #expect(sink.resumableOffset == 0)
    try sink.begin(head, offset: 0, transfer: CountingTransfer())
    try give(car, to: sink)
    let (file, header) = try sink.finish()
    let mapped = try file.map()
    #expect(mapped.withBytes { $0.array } == car)
    #expect(header.roots == (try CARHeader(car.span).roots))
    #expect(folder.names().isEmpty)
  }

  @Test func `begins again with every attempt`() throws {
    let (first, second) = (try TestRepository(posts: 50).car(), try TestRepository(posts: 3).car())
    let sink = sink()
    try sink.begin(head, offset: 0, transfer: CountingTransfer())
    try give(Array(first.prefix(first.count / 2)), to: sink)
    sink.suspend()
    try sink.begin(head, offset: 0, transfer: CountingTransfer())
    try give(second, to: sink)
    let file = try sink.finish().file
    let mapped = try file.map()
    #expect(mapped.withBytes { $0.array } == second)
  }

  @Test func `ends the transfer at the first block that is not what it should be`() throws {
    var car = try TestRepository(posts: 50).car()
    car[car.count / 2] ^= 1
    let sink = sink()
    try sink.begin(head, offset: 0, transfer: CountingTransfer())
    #expect(throws: CARError.self) { try give(car, to: sink) }
  }

  @Test func `does not take a part for the whole`() throws {
    let car = try TestRepository(posts: 50).car()
    for length in [30, 100, car.count / 2, car.count - 1] {
      let sink = sink()
      try sink.begin(head, offset: 0, transfer: CountingTransfer())
      try give(Array(car.prefix(length)), to: sink)
      #expect(throws: CARError.self, "\(length)") { try sink.finish() }
    }
    let sink = sink()
    #expect(throws: (any Error).self) { try sink.finish() }
    try sink.begin(head, offset: 0, transfer: CountingTransfer())
    #expect(throws: CARError(.truncatedHeader, offset: 0)) { try sink.finish() }
  }

  @Test(arguments: [
    "<html>",
    "<!DOCTYPE html>\n<html><body>Welcome to the hotel's network, please pay</body></html>",
  ])
  func `shows what came instead of a CAR`(text: String) throws {
    let sink = sink()
    try sink.begin(head, offset: 0, transfer: CountingTransfer())
    let error = #expect(throws: BackupError.self) {
      try give(Array(text.utf8), to: sink)
      _ = try sink.finish()
    }
    #expect("\(try #require(error))".contains("<"))
    #expect(try #require(error).isAboutContent)
  }
}
