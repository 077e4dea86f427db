import Foundation
import StandIn
import Synchronization
import TestSupport
import Testing

@testable import Fleet

/// Each verb of a fleet is stopped at the calls it makes while they get no answer, its database's
/// first; `CARPACK_FROZEN` chooses as it does for all other verbs.
@Suite(
  .ownThread,
  .enabled(
    if: Command.path != nil && TestDatabase.server != nil,
    "\(Command.absence), or \(TestDatabase.absence)"))
struct `A signal while a partner of a fleet says nothing` {
  /// The result of something that was waited for.
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

  /// The verbs, and what is run before each; SERVER and FIREHOSE stand for addresses.
  private static let lines: [(name: String, before: [String], line: String)] = [
    ("fleet init", [], made), ("fleet add", [made], add),
    ("fleet add --host", [made], "add --host SERVER"), ("fleet status", [made], "status"),
    ("fleet work", [made, "\(add) --firehose FIREHOSE"], "work --lease 3s --jobs 1"),
    ("fleet list", [made, add], "list"), ("fleet retry", [made, add], "retry --failed"),
    ("fleet check", [made, add, "work --jobs 1"], "check"),
    ("fleet remove", [made, add, "work --jobs 1"], "remove --archives --host SERVER"),
  ]
  private static let made = "init --store s3://\(StandInStore.bucket)/"
  private static let add = "add --accounts list.txt"

  /// A verb of a fleet that has two accounts, or is to have them.
  private static func verb(_ name: String, _ before: [String], _ line: String) -> FrozenVerb {
    FrozenVerb(name) {
      let accounts = try (0..<2).map { try StandInAccount("account-\($0)", posts: 2, blobs: 1) }
      let (server, store) = (try StandInPDS(accounts: accounts), try StandInStore())
      let firehose = try HostileFirehose(.opens)
      let database = try waiting { try await TestDatabase() }
      var address = try #require(URLComponents(string: database.url))
      let relay = try LoopbackRelay(to: UInt16(address.port ?? 5432))
      (address.host, address.port) = ("127.0.0.1", Int(relay.port))
      let door = try FrozenDoor(to: try #require(address.string))
      let command = try Command(in: TemporaryFolder())
      let list = accounts.map { $0.did + "\n" }.joined()
      try command.folder.write("list.txt", Array(list.utf8))
      @Sendable func start(_ line: String) throws -> RunningCommand {
        var variables = store.environment
        variables["CARPACK_DATABASE"] = door.url
        variables["XDG_CACHE_HOME"] = command.folder.file("cache")
        variables["CARPACK_PLC_URL"] = server.url
        variables["CARPACK_HANDLE_RESOLVER"] = server.url
        // Nothing but a firehose is waited for when all is done.
        let end = line.hasPrefix("work") && !firehose.isFrozen ? " --until-idle" : ""
        let line = line.replacing("SERVER", with: server.url)
          .replacing("FIREHOSE", with: "ws://127.0.0.1:\(firehose.port)")
        return try command.start("carpack fleet \(line)\(end)", environment: variables)
      }
      for line in before {
        let result = try start(line).wait()
        #expect(result.status == 0, "\(line): \(result.text)\(result.errors)")
      }
      var stage = FrozenStage(
        [
          ("way to the database", door), ("database", relay), ("server", server.server),
          ("store", store.server),
        ] + (line.hasPrefix("work") ? [("firehose", firehose)] : []),
        state: { store.keys + ["\(store.toldUploads) uploads"] }, start: { try start(line) })
      if line.hasPrefix("work") { stage.rest = 4 }
      stage.finish = {
        relay.stop()
        firehose.stop()
        do {
          try waiting { try await database.remove() }
        } catch {
          Issue.record(error)
        }
      }
      return stage
    }
  }

  @Test func `ends each command at once, and the next one completes`() throws {
    let verbs = Self.lines.map(Self.verb)
    for fault in try FrozenMatrix(verbs, choosing: 15).run() { Issue.record("\(fault)") }
  }
}
