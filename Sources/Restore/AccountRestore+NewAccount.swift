internal import ATProtocol
internal import IPLD
internal import XRPC

/// An account with a DID of its own, made of an archive: what is left where the old server is gone
/// and there is no rotation key.
///
/// It has no followers, and what others wrote in answer still names the old account.
extension AccountRestore {
  /// Makes the account, or goes on with it.
  mutating func runAsNew() async throws {
    let target = try await newAccount(try await describeServer())
    guard !journal.has(.comparison) else {
      // It has been used since, perhaps, and is not replaced.
      for step in [RestoreStep.repository, .blobs, .comparison] {
        try finish(step, "", wasDone: true)
      }
      return
    }
    source = try await onOwnThread {
      [old = try have(), new = target.did, rewrites = options.rewritesReferences] in
      try RestoreSource(old, as: new, rewritesReferences: rewrites)
    }
    if let count = source?.rewrittenCount, count > 0 {
      tell(.warning("\(count) records name the new account now, and have other CIDs"))
    }
    try await putRepository(target)
    try await putBlobs(target)
    try await putPreferences(target)
    try await compare(target)
  }

  private mutating func newAccount(_ server: RestoreServer) async throws -> DestinationServer {
    if journal.hasAskedForAccount, let handle = journal.handle {
      do {
        return try await finished(logIn(as: handle.text), handle, wasDone: true)
      } catch let error as XRPCError where [400, 401].contains(error.status) {
        // It was not made.
      }
    }
    guard let handle = options.handle ?? journal.handle else {
      throw RestoreError.needs("a handle for the new account", option: "--handle")
    }
    guard let email = options.email else {
      throw RestoreError.needs("a mail address for the new account", option: "--email")
    }
    try checkInvite(server)
    do {
      _ = try await create(nil, handle, email: email, as: nil)
    } catch let error where Self.isUncertain(error) {
      // Logging in tells whether it was made.
      tell(.warning("\(error)"))
    }
    return try await finished(logIn(as: handle.text), handle, wasDone: false)
  }

  private mutating func finished(
    _ target: DestinationServer, _ handle: Handle, wasDone: Bool
  ) throws -> DestinationServer {
    journal.newDID = target.did
    (report.handle, report.newDID) = (handle, target.did)
    try finish(.account, "\(handle), \(target.did)", wasDone: wasDone)
    return target
  }
}
