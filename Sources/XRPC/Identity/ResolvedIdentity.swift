package import ATProtocol

/// What was found out about an account, and who said so.
package struct ResolvedIdentity: Sendable {
  /// The DID document, as it came.
  package var documentBytes: [UInt8]
  /// The DID document, as it reads.
  package var document: DIDDocument
  /// The handle, if it was asked about and leads to the account, as the account's document leads to
  /// it.
  package var handle: Handle?
  /// The account's server: the one that the user set, or else the one that the document names.
  package var pds: String?
  /// Where each fact is from.
  package var sources: Sources
  /// What is not as it should be.
  package var warnings: [IdentityWarning] = []

  /// The account.
  package var did: DID { document.id }

  /// Where each fact is from, such as `DNS TXT _atproto.alice.example.com` or a URL.
  package struct Sources: Hashable, Sendable {
    /// Who said that the handle leads to the account; nil if that was not checked or not confirmed.
    package var handle: String?
    /// Where the DID document was, which names the signing key, too.
    package var document: String
    /// Who named the server: the document, or ``user``; nil if neither did.
    package var pds: String?

    /// What stands for the options that the user set.
    package static let user = "set by the user"
  }
}

/// Something about an identity that is not as it should be, though the account is known.
package enum IdentityWarning: Equatable, Sendable, CustomStringConvertible {
  /// DNS and the handle's website name different accounts; DNS counts.
  case conflict(Handle, dns: DID, website: DID)
  /// The handle leads to the account, whose document claims another one, or none.
  case handleNotClaimed(Handle, claimed: Handle?)
  /// The document claims a handle that leads to another account.
  case handleLeadsElsewhere(Handle, DID)
  /// The document claims a handle that does not lead to the account: what was asked, and the
  /// result.
  case handleNotConfirmed(Handle, IdentityError)
  /// The document lacks something.
  case gap(DIDDocumentGap)

  /// Whether it is about handle and account contradicting each other.
  package var isContradiction: Bool {
    switch self {
    case .handleNotClaimed, .handleLeadsElsewhere: true
    // A server whose certificate does not hold has not answered.
    case .handleNotConfirmed(_, .handleUntrusted): false
    case .handleNotConfirmed(_, let error): error.kind != .temporary
    case .conflict, .gap: false
    }
  }

  /// What a person reads.
  package var description: String {
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
