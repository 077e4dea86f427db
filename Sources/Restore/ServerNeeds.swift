internal import HTTP
internal import XRPC

/// What a server has to offer so that an account can be restored to it.
///
/// | kind | methods |
/// |---|---|
/// | a move, a rehearsal | createAccount with a DID, importRepo, checkAccountStatus, listMissingBlobs, uploadBlob; for the move also getRecommendedDidCredentials and activateAccount |
/// | `--as-new` | createAccount, importRepo, checkAccountStatus, listMissingBlobs, uploadBlob |
enum ServerNeeds {
  private static let always = [
    "com.atproto.server.createAccount", "com.atproto.repo.importRepo",
    "com.atproto.server.checkAccountStatus", "com.atproto.repo.listMissingBlobs",
    "com.atproto.repo.uploadBlob",
  ]
  private static let forMoving = [
    "com.atproto.identity.getRecommendedDidCredentials", "com.atproto.server.activateAccount",
  ]

  /// The methods that a server lacks.
  ///
  /// Each is asked for with GET, without a token: a server that has it refuses that, in other words
  /// than what it does not have.
  ///
  /// - Throws: `TransportError` if the server does not answer.
  static func lacking(
    on server: String, _ options: RestoreOptions, _ network: Network
  ) async throws -> [String] {
    let client = XRPCClient(service: server, network: network)
    var lacking: [String] = []
    for name in always + (options.asNew || options.isRehearsal ? [] : forMoving) {
      do {
        try await client.perform(.probe(name), attempts: 1)
      } catch let error as XRPCError where [404, 501].contains(error.status) {
        lacking.append(name)
      } catch is XRPCError {
        // It is there, and wants more.
      }
    }
    return lacking
  }
}
