internal import ATProtocol
internal import Extraction
internal import HTTP
internal import Restore
internal import Snapshots
internal import Terminal

/// `carpack restore --record`: single records back into the account where it is now.
extension RestoreCommand {
  func restoreRecords(of snapshot: ArchivedSnapshot, _ networkOptions: NetworkOptions) throws {
    let paths = try paths(in: snapshot)
    let login = try given.login.asOwner()
    let isWhole = try runBlocking { [display = RestoreDisplay(common), replaces = overwrite] in
      let restore = try await RecordRestore(
        snapshot, network: try Network(networkOptions), login, replaces: replaces,
        tell: { display.show($0) }, asksForCode: OwnerLogin.askForCode)
      var isWhole = true
      for path in paths {
        let outcome = try await restore.restore(path)
        display.show(path, outcome)
        isWhole = isWhole && [.written, .there].contains(outcome)
      }
      return isWhole
    }
    if !isWhole { throw ExitStatus.incomplete }
  }

  private func paths(in snapshot: ArchivedSnapshot) throws -> [RecordPath] {
    try Selection.items(records, in: snapshot).map { item in
      guard case .record(let text) = item else {
        throw Failure("only records can be put back", status: .usage)
      }
      let path = RecordPath(checked: text)
      if let oddity = path.oddity {
        throw Failure("\(text) is not a path that a server accepts: \(oddity)", status: .refused)
      }
      return path
    }
  }
}
