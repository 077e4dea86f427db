internal import ATProtocol
internal import Failures
internal import HTTP
internal import IPLD
internal import Reports
internal import Restore
internal import Snapshots
internal import Terminal

/// `carpack restore --in-place`: a snapshot's records back into the account on its own server.
extension RestoreCommand {
  func restoreInPlace(_ snapshot: ArchivedSnapshot, _ networkOptions: NetworkOptions) throws {
    let login = try given.login.asOwner()
    let display = RestoreDisplay(common)
    do {
      let isWhole = try runBlocking { [agrees, plan, exact] in
        let restore = try await InPlaceRestore(
          snapshot, isExact: exact, network: try Network(networkOptions), login,
          asking: OwnerLogin.askForCode
        ) { display.show($0) }
        var changes = try await restore.changes()
        display.show(changes, isExact: exact, isDone: false)
        if !plan {
          changes = try await restore.write(changes, agrees: agrees)
          display.show(changes, isExact: exact, isDone: true)
        }
        return changes.unwritable.isEmpty && changes.missingBlobCount == 0
          && (plan || changes.areWritten && (!exact || changes.added.isEmpty))
      }
      if !isWhole { throw ExitStatus.incomplete }
    } catch let error where Failure.isOurs(error) {
      Failure(error).say()
      RestoreDisplay.say(RestoreContinuation.after(error).map(ContinuedCommand.line))
      throw Failure(error).status
    }
  }
}

extension RestoreDisplay {
  private static let maximumShown = 20

  /// Shows what is different on the server, before or after it was written.
  func show(_ changes: InPlaceRestore.Changes, isExact: Bool, isDone: Bool) {
    if Console.isJSON { return Self.inPlace.print((changes, isExact, isDone)) }
    let isWhole = changes.created.isEmpty && changes.updated.isEmpty
    if isDone, isWhole, !isExact || changes.added.isEmpty {
      Console.print("the account has all records of the snapshot")
    }
    let later = isExact ? "would be deleted" : "came later and stay"
    let lists = [
      (isDone ? "not written" : "to write", changes.created),
      (isDone ? "not put back" : "to put back", changes.updated),
      (isDone ? "only in the account" : later, changes.added),
    ]
    for (words, list) in lists where !isDone || !list.isEmpty {
      Console.print("\(Quantity.count(list.count, "record")) \(words)")
      for (path, _) in list.prefix(Self.maximumShown) { Console.print("  \(path)") }
      if list.count > Self.maximumShown {
        Console.print("  and \(list.count - Self.maximumShown) more")
      }
    }
    if !isDone { Console.print("\(Quantity.count(changes.blobs.count, "blob")) to send") }
    for (path, why) in changes.unwritable { Console.say(.missing, "\(path): \(why)") }
  }

  /// Prints the commands that continue the restore.
  static func say(_ commands: [String]) {
    guard !Console.isJSON else { return }
    for (number, command) in commands.enumerated() {
      Console.say("\(number == 0 ? "to continue" : "or"): \(command)")
    }
  }

  static let inPlace: Report<(changes: InPlaceRestore.Changes, isExact: Bool, isDone: Bool)> =
    Report(
      "restore", event: "in-place",
      "With --in-place: what is different on the server, before and after it was written."
    ) {
      Field("done", "whether it was written") { $0.isDone }
      Field("created", "records that the account lacks") { $0.changes.created.map { "\($0.path)" } }
      Field("updated", "records that differ in the account") {
        $0.changes.updated.map { "\($0.path)" }
      }
      Field("added", "records of the account that the snapshot does not have") {
        $0.changes.added.map { "\($0.path)" }
      }
      Field("exact", "whether these are deleted (`--exact`)") { $0.isExact }
      Field("unwritable", "records that no server accepts as they are") {
        $0.changes.unwritable.map(\.path)
      }
      Field("blobs", "blobs to send") { $0.changes.blobs.count }
      Field("missingBlobs", "of these, not in the archive") {
        $0.changes.missingBlobCount
      }
    }
}
