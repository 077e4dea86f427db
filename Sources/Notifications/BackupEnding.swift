package import HTTP
internal import Reports
internal import Terminal

/// Runs a backup, and then sends the exit status to the health check, and runs the program for
/// it.
///
/// Neither changes the status of the backup; a signal that comes during the health check ends
/// the command with its own.
///
/// - Parameters:
///   - url: the URL of the health check, if there is one.
///   - hooks: the programs to run, if there are any.
///   - network: how servers are reached.
///   - body: the backup.
/// - Throws: ``Failure`` for a URL that cannot be used, before anything is done; what `body`
///   throws, or the status that is left once the error has been printed.
package func endingBackup(
  healthcheck url: String?, hooks: Hooks?, network: NetworkOptions,
  _ body: () throws -> Void
) throws {
  let healthcheck = try url.map { try Healthcheck($0) }
  let record = hooks?.programs.isEmpty == false ? EventRecord.begin() : nil
  guard healthcheck != nil || record != nil else { return try body() }
  var status = ExitStatus.success
  do {
    try body()
  } catch let ended as ExitStatus {
    status = ended
  } catch let error where Failure.isOurs(error) {
    // Options that do not go together concern only the person who typed them.
    let failure = Failure(error)
    failure.say()
    EventRecord.record(Failure.report, failure)
    status = failure.status
  }
  Console.flush()
  // The backup is whole; who wants the command to end wants no program to be started.
  if let ended = healthcheck?.send(status, network) { throw ended }
  if let hooks, let record { hooks.run(after: status, report: record) }
  if status != .success { throw status }
}
