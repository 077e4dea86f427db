internal import ATProtocol
internal import ArgumentParser
internal import HTTP

/// What follows a backup: the health check is told the exit status, and a program is run.
///
/// Neither changes the status of the backup; a signal that comes while the health check is told ends
/// the command with its own.
struct BackupEnding {
  private let healthcheck: Healthcheck?
  private let hooks: Hooks?
  private let options: NetworkOptions

  /// What follows.
  ///
  /// - Parameters:
  ///   - url: the URL of the health check, if there is one.
  ///   - network: how servers are reached.
  /// - Throws: ``Failure`` for a URL that cannot be used, before anything is done.
  init(healthcheck url: String?, network: NetworkCommandOptions) throws {
    healthcheck = try url.map { try Healthcheck($0) }
    let hooks = try Configuration.ofUser()?.hooks
    self.hooks = hooks?.programs.isEmpty == false ? hooks : nil
    options = try network.options()
  }

  /// Does what `body` does, and then what follows.
  ///
  /// - Throws: What `body` throws, or the status that is left of it once it is said.
  func follow(_ body: () throws -> Void) throws {
    guard healthcheck != nil || hooks != nil else { return try body() }
    let record = hooks.map { _ in EventRecord.begin() }
    let status: ExitStatus
    do {
      try body()
      status = .success
    } catch let ended as ExitStatus {
      status = ended
    } catch let error where Failure.isOurs(error) {
      let failure = Failure(error)
      failure.say()
      EventRecord.record(Failure.report, failure)
      status = failure.status
    } catch {
      // Options that do not go together: the person who gave them is told, and no one else.
      throw error
    }
    Console.flush()
    // The backup is whole; who wants the command to end wants no program to be started.
    if let ended = healthcheck?.send(status, options) { throw ended }
    if let hooks, let record { hooks.run(after: status, report: record) }
    if status != .success { throw status }
  }
}
