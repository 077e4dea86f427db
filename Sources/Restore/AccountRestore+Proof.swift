internal import ATProtocol
internal import Files
internal import IPLD
internal import Repository
internal import XRPC

/// The end of a restore: what the new server serves is checked as a backup would check it.
///
/// After an import the reference server serves the commit of the archive, with its old signature,
/// until something is written. For an account that moved that signature is genuine: its history
/// names the key. A new account never had that key, and its server has to sign.
extension AccountRestore {
  /// The path of the record that is written to make the server sign, and is deleted at once: its
  /// collection has a name that no application can have.
  private static let mark = RecordPath(checked: "internal.carpack.signature/self")

  /// Checks what the server serves, and makes it sign if that is needed and agreed to.
  ///
  /// - Throws: ``RestoreQuestion/signing``; ``RestoreError/unsigned(_:)`` if that does not help;
  ///   ``RestoreError/otherRepository(_:)``.
  func prove(_ target: DestinationServer) async throws -> Outcome {
    guard let why = try await whyNotGenuine(target) else { return ("", false) }
    tell(.warning("\(target.client.service) serves a commit that is \(why)"))
    try ask(.signing)
    let record: IPLDMap = [
      "$type": .string(Self.mark.collection), "createdAt": .string(options.now()),
    ]
    _ = try await target.call(.writeRecord(.map(record), at: Self.mark, of: target.did))
    try await deleteMark(target)
    if let why = try await whyNotGenuine(target) { throw RestoreError.unsigned(why) }
    return ("signed anew", false)
  }

  /// Deletes what an interrupted run may have left.
  private func deleteMark(_ target: DestinationServer) async throws {
    guard let cid = try await RecordRestore.cid(at: Self.mark, on: target) else { return }
    try await target.perform(.deleteRecord(Self.mark, of: target.did, expecting: cid))
  }

  /// Why what the server serves publicly is not the account's own; nil if it is.
  private func whyNotGenuine(_ target: DestinationServer) async throws -> String? {
    guard let source = report.source else { return nil }
    let client = XRPCClient(service: target.client.service, network: network)
    var commit = source.commit
    if try await client.call(.getLatestCommit(target.did)).cid != source.head {
      try await deleteMark(target)
      commit = try await source.received(from: client, target.did).commit
      if !isInUse, commit.data != source.commit.data {
        throw RestoreError.otherRepository(
          "its tree is \(commit.data), and the archive's is \(source.commit.data)")
      }
    }
    guard target.did.method == "plc" else {
      let key = try await IdentityResolver(network: network).dids.document(of: target.did)
        .document.signingKey
      return key.map { commit.isSigned(by: $0) } == true
        ? nil : "not signed with the key in the DID document"
    }
    let present = try await PLCUpdate(of: target.did, network: network, now: options.now)
    let verdict = present.history.judge(commit, now: present.time)
    switch verdict.revisionTime {
    case .impossible: return "\(verdict)"
    // One of the future is the server's clock, and no later write mends it.
    case .plausible, .future, .none: return verdict.isGenuine ? nil : "\(verdict)"
    }
  }
}
