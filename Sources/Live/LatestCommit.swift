internal import ATProtocol
internal import Files
internal import XRPC

extension XRPCClient {
  /// The newest commit of an account; nil if the server does not say.
  ///
  /// - Throws: ``BackupError/accountUnavailable(_:_:)``; what the client throws, if it may pass.
  func latestCommit(of did: DID) async throws -> GetLatestCommit.Output? {
    do {
      return try await call(GetLatestCommit(did: did))
    } catch let error as XRPCError {
      if let unavailable = error.unavailability(of: did) { throw unavailable }
      // Whether the server is of use, the repository tells; a failure that may pass has been waited
      // for.
      guard !error.isTransient else { throw error }
      return nil
    }
  }
}

extension XRPCError {
  /// That an account is not to be had, in words of one's own; nil if that is not what the server
  /// says.
  func unavailability(of did: DID) -> BackupError? {
    declared(GetRepo.DeclaredError.self).map { .accountUnavailable(did.text, $0.sentence) }
  }
}
