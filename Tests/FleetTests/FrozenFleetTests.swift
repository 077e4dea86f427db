import Foundation
import StandIn
import Synchronization
import TestSupport
import Testing

@testable import Fleet

/// Each verb of a fleet is stopped at the calls it makes while nobody answers them, its database's
/// first; `CARPACK_FROZEN` chooses as it does for all other verbs.
@Suite(
  .ownThread,
  .enabled(
    if: Command.path != nil && TestDatabase.server != nil,
    "\(Command.absence), or \(TestDatabase.absence)"))
struct `A signal while a partner of a fleet says nothing` {
  /// What came of something that was waited for.
  private final class Outcome<Value: Sendable>: Sendable {
    let result = Mutex<Result<Value, any Error>?>(nil)
  }

  /// Waits for something on a thread that may wait.
  private static func waiting<Value: Sendable>(
    for body: @escaping @Sendable () async throws -> Value
  ) throws -> Value {
    let (outcome, isDone) = (Outcome<Value>(), DispatchSemaphore(value: 0))
    Task(executorPreference: OwnThread()) {
      let result: Result<Value, any Error>
      do { result = .success(try await body()) } catch { result = .failure(error) }
      outcome.result.withLock { $0 = result }
      isDone.signal()
    }
    isDone.wait()
    guard let result = outcome.result.withLock({ $0 }) else { throw CancellationError() }
    return try result.get()
  }

  /// A verb of a fleet with two accounts.
  ///
  /// - Parameter before: what is run before, with a database that answers.
  private static func verb(
    _ name: String, after before: [String] = [],
    _ line: @escaping @Sendable (StandInPDS) -> String
  ) -> FrozenVerb {
    FrozenVerb(name) {
      let accounts = try (0..<2).map { try StandInAccount("account-\($0)", posts: 2, blobs: 1) }
      let (server, store) = (try StandInPDS(accounts: accounts), try StandInStore())
      let database = try waiting { try await TestDatabase() }
      var address = try #require(URLComponents(string: database.url))
      let relay = try LoopbackRelay(to: UInt16(address.port ?? 5432))
      (address.host, address.port) = ("127.0.0.1", Int(relay.port))
      let (command, url) = (try Command(in: TemporaryFolder()), try #require(address.string))
      let list = accounts.map { $0.did + "\n" }.joined()
      try command.folder.write("list.txt", Array(list.utf8))
      @Sendable func start(_ line: String) throws -> RunningCommand {
        var variables = store.environment
        variables["CARPACK_DATABASE"] = url
        variables["XDG_CACHE_HOME"] = command.folder.file("cache")
        variables["CARPACK_PLC_URL"] = server.url
        variables["CARPACK_HANDLE_RESOLVER"] = server.url
        return try command.start("carpack fleet \(line)", environment: variables)
      }
      for line in before {
        let result = try start(line).wait()
        #expect(result.status == 0, "\(line): \(result.text)\(result.errors)")
      }
      var stage = FrozenStage(
        [("database", relay), ("server", server.server), ("store", store.server)],
        state: { store.keys + ["\(store.toldUploads) uploads"] },
        start: { try start(line(server)) })
      if name == "fleet work" { stage.rest = 4 }
      stage.finish = {
        relay.stop()
        do {
          try waiting { try await database.remove() }
        } catch {
          Issue.record(error)
        }
      }
      return stage
    }
  }

  private static let made = "init --store s3://\(StandInStore.bucket)/"

  private static let verbs = [
    verb("fleet init") { _ in made },
    verb("fleet add", after: [made]) { _ in "add --accounts list.txt" },
    verb("fleet add --host", after: [made]) { "add --host \($0.url)" },
    verb("fleet status", after: [made]) { _ in "status" },
    verb("fleet work", after: [made, "add --accounts list.txt"]) { _ in
      "work --until-idle --lease 3s --jobs 1"
    },
  ]

  @Test func `ends each command at once, and the next one completes`() throws {
    for fault in try FrozenMatrix(Self.verbs, choosing: 15).run() { Issue.record("\(fault)") }
  }
}
