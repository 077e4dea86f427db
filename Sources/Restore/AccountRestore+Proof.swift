internal import ATProtocol
internal import Files
internal import IPLD
internal import Repository
internal import XRPC

/// The end of a restore: what the new server serves is checked as a backup would check it.
///
/// After an import the reference server serves the commit of the archive, with its old signature,
/// until something is written. For an account that moved that signature is genuine, since its history
/// names the key, but relays and app views ask for the present one. A new account never had that key,
/// and its server has to sign.
extension AccountRestore {
  /// Whose signature what the new server serves has.
  private enum Signature {
    /// That of the key which the DID names.
    case present
    /// That of a key which the DID named before.
    case former
    /// None of the account's: why.
    case none(String)
  }

  /// The path of the record that is written to make the server sign, and is deleted at once: its
  /// collection has a name that no application can have.
  private static let mark = RecordPath(checked: "internal.carpack.signature/self")

  /// Checks what the server serves, and makes it sign if that is needed and agreed to.
  ///
  /// - Throws: ``RestoreQuestion/signing`` if the account is not its own without that;
  ///   ``RestoreError/unsigned(_:)`` if that does not help; ``RestoreError/otherRepository(_:)``.
  mutating func prove(_ target: DestinationServer) async throws -> Outcome {
    switch try await signature(on: target) {
    case .present: return ("", false)
    case .former:
      guard options.agrees(.signing) else {
        report.hasFormerSignature = true
        return ("with a former key", false)
      }
    case .none(let why):
      tell(.warning("\(target.client.service) serves a commit that is \(why)"))
      try ask(.signing)
    }
    let record: IPLDMap = [
      "$type": .string(Self.mark.collection), "createdAt": .string(options.now()),
    ]
    _ = try await target.call(.writeRecord(.map(record), at: Self.mark, of: target.did))
    try await deleteMark(target)
    switch try await signature(on: target) {
    case .present: return ("signed anew", false)
    case .former: throw RestoreError.unsigned("it still has the signature of a former key")
    case .none(let why): throw RestoreError.unsigned(why)
    }
  }

  /// Deletes what an interrupted run may have left.
  private func deleteMark(_ target: DestinationServer) async throws {
    guard let cid = try await RecordRestore.cid(at: Self.mark, on: target) else { return }
    try await target.perform(.deleteRecord(Self.mark, of: target.did, expecting: cid))
  }

  /// Whose signature what the server serves publicly has.
  private func signature(on target: DestinationServer) async throws -> Signature {
    let source = try have(report.source)
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
    let key = try await IdentityResolver(network: network).dids.document(of: target.did)
      .document.signingKey
    let isPresent = key.map { commit.isSigned(by: $0) } == true
    guard target.did.method == "plc" else {
      return isPresent ? .present : .none("not signed with the key in the DID document")
    }
    let present = try await PLCUpdate(of: target.did, network: network, now: options.now)
    let verdict = present.history.judge(commit, now: present.time)
    switch verdict.revisionTime {
    case .impossible: return .none("\(verdict)")
    // One of the future is the server's clock, and no later write mends it.
    case .plausible, .future, .none:
      return verdict.isGenuine ? isPresent ? .present : .former : .none("\(verdict)")
    }
  }
}
