internal import ATProtocol
internal import Extraction
internal import HTTP
internal import Reports
internal import Restore
internal import Snapshots
internal import Terminal
internal import XRPC

/// `carpack restore --record`: single records back into the account where it is now.
struct RecordRestoring {
  let command: RestoreCommand

  func run(_ snapshot: ArchivedSnapshot, _ networkOptions: NetworkOptions) throws {
    let paths = try paths(in: snapshot)
    let display = RestoreDisplay(command.reporting.common)
    let login = (password: try command.login.password() ?? Secret(""), code: command.login.code)
    let replaces = command.overwrite
    let isWhole = try runBlocking {
      let restore = try await RecordRestore(
        snapshot, network: try Network(networkOptions), login, replaces: replaces,
        tell: { display.show($0) }, asksForCode: MailCode.ask)
      var isWhole = true
      for path in paths {
        let outcome = try await restore.restore(path)
        Self.show(outcome, path)
        if outcome != .written, outcome != .there { isWhole = false }
      }
      return isWhole
    }
    if !isWhole { throw ExitStatus.incomplete }
  }

  private func paths(in snapshot: ArchivedSnapshot) throws -> [RecordPath] {
    try Selection.items(command.records, in: snapshot).map { item in
      guard case .record(let text) = item else {
        throw Failure("only records can be put back", status: .usage)
      }
      let path = RecordPath(checked: text)
      if let oddity = path.oddity {
        throw Failure("\(text) is no path that a server takes: \(oddity)", status: .refused)
      }
      return path
    }
  }

  private static func show(_ outcome: RecordRestore.Outcome, _ path: RecordPath) {
    if Console.isJSON {
      RestoreReports.record.print((path, outcome))
      Console.flush()
    } else {
      Console.print("\(path): \(outcome.sentence)")
      Console.flush()
    }
  }
}
