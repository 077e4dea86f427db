public import ATProtocol

/// What was found out about an account, and who said so.
public struct ResolvedIdentity: Sendable {
  /// The account.
  public var did: DID
  /// The handle, if it was asked about and leads to the account, as the account's document leads to
  /// it.
  public var handle: Handle?
  /// The handle that the account's document claims.
  public var claimedHandle: Handle?
  /// The account's server: the one that the user set, or else the one that the document names.
  public var pds: String?
  /// The key that signs the repository.
  public var signingKey: VerificationKey?
  /// The DID document, as it came.
  public var documentBytes: [UInt8]
  /// The DID document, as it reads.
  public var document: DIDDocument
  /// Where each fact is from.
  public var sources: Sources
  /// What is not as it should be.
  public var warnings: [IdentityWarning]

  /// Where each fact is from, such as `DNS TXT _atproto.alice.example.com` or a URL.
  public struct Sources: Hashable, Sendable {
    /// Who said that the handle leads to the account; nil if nobody was asked, or nobody did.
    public var handle: String?
    /// Where the DID document was, which names the signing key, too.
    public var document: String
    /// Who named the server: the document, or ``user``; nil if nobody did.
    public var pds: String?

    /// What stands for the options that the user set.
    public static let user = "set by the user"
  }

  /// Whether handle and account contradict each other.
  public var isContradictory: Bool { warnings.contains(where: \.isContradiction) }
}

/// Something about an identity that is not as it should be, though the account is known.
public enum IdentityWarning: Equatable, Sendable, CustomStringConvertible {
  /// DNS and the handle's website name different accounts; DNS counts.
  case conflict(Handle, dns: DID, website: DID)
  /// The handle leads to the account, whose document claims another one, or none.
  case handleNotClaimed(Handle, claimed: Handle?)
  /// The document claims a handle that leads to another account.
  case handleLeadsElsewhere(Handle, DID)
  /// The document claims a handle that does not lead to the account: what was asked, and what came
  /// of it.
  case handleNotConfirmed(Handle, IdentityError)
  /// The document lacks something.
  case gap(DIDDocumentGap)

  /// Whether it is about handle and account contradicting each other.
  public var isContradiction: Bool {
    switch self {
    case .handleNotClaimed, .handleLeadsElsewhere: true
    // A server whose certificate does not hold has not answered.
    case .handleNotConfirmed(_, .handleUntrusted): false
    case .handleNotConfirmed(_, let error): error.kind != .temporary
    case .conflict, .gap: false
    }
  }

  /// What a person reads.
  public var description: String {
    switch self {
    case .conflict(let handle, let dns, let website):
      "DNS says that \(handle) is \(dns), and its website says \(website); DNS counts"
    case .handleNotClaimed(let handle, let claimed):
      "\(handle) leads to the account, which \(claimed.map { "goes by \($0)" } ?? "claims no handle")"
    case .handleLeadsElsewhere(let handle, let did):
      "the account claims the handle \(handle), which leads to \(did)"
    case .handleNotConfirmed(let handle, let error):
      "the account claims the handle \(handle), which was not confirmed: \(error)"
    case .gap(let gap): "\(gap)"
    }
  }
}
