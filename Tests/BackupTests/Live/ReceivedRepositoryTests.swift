import Archive
import HTTP
import IPLD
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Files
@testable import Repository

@Suite struct `A repository that arrives` {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func repository(limit: Int = 1 << 30) -> ReceivedRepository {
    ReceivedRepository(in: FilePath(folder.path), limit: limit, arrived: { _ in })
  }

  private func answer(_ bytes: [UInt8], endingWith error: TransportError? = nil) -> HTTPBody {
    let pieces = stride(from: 0, to: bytes.count, by: 1000).map { start in
      Array(bytes[start..<min(start + 1000, bytes.count)])
    }
    return HTTPBody(pieces, endingWith: error)
  }

  private let broken = TransportError(.cutOff("odd"), url: "https://pds.test")

  @Test func `is there as it came, in a file without a name`() async throws {
    let car = try TestRepository(posts: 50).car()
    let repository = repository()
    try await repository.receive(answer(car))
    let mapped = try await repository.received().map()
    #expect(mapped.withBytes { $0.array } == car)
    #expect(folder.names().isEmpty)
  }

  @Test func `begins again with every attempt`() async throws {
    let (first, second) = (try TestRepository(posts: 50).car(), try TestRepository(posts: 3).car())
    let repository = repository()
    await #expect(throws: broken) {
      try await repository.receive(
        answer(Array(first.prefix(first.count / 2)), endingWith: broken))
    }
    try await repository.receive(answer(second))
    let mapped = try await repository.received().map()
    #expect(mapped.withBytes { $0.array } == second)
  }

  @Test func `ends at the first block that is not what it should be`() async throws {
    var car = try TestRepository(posts: 50).car()
    car[car.count / 2] ^= 1
    let damaged = car
    await #expect(throws: CARError.self) {
      try await repository().receive(answer(damaged, endingWith: broken))
    }
  }

  @Test func `ends when it is longer than it may be`() async throws {
    let car = try TestRepository(posts: 50).car()
    try await repository(limit: car.count).receive(answer(car))
    await #expect(throws: BackupError.self) {
      try await repository(limit: car.count - 1).receive(answer(car, endingWith: broken))
    }
  }

  @Test func `is not taken for the whole where it is a part`() async throws {
    let car = try TestRepository(posts: 50).car()
    for length in [0, 30, 100, car.count / 2, car.count - 1] {
      await #expect(throws: CARError.self, "\(length)") {
        try await repository().receive(answer(Array(car.prefix(length))))
      }
    }
    await #expect(throws: BackupError.self) { _ = try await repository().received() }
  }

  @Test(arguments: [
    "<html>",
    "<!DOCTYPE html>\n<html><body>Welcome to the hotel's network, please pay</body></html>",
  ])
  func `shows what came instead of a CAR`(text: String) async throws {
    let error = await #expect(throws: BackupError.self) {
      try await repository().receive(answer(Array(text.utf8)))
    }
    #expect("\(try #require(error))".contains("<"))
    #expect(try #require(error).faultKind == .damage)
  }
}
