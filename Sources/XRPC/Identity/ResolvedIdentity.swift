package import ATProtocol

/// What was found out about an account, and the source of each fact.
package struct ResolvedIdentity: Sendable {
  /// The DID document, as received.
  package var documentBytes: [UInt8]
  /// The DID document, as parsed.
  package var document: DIDDocument
  /// The handle, if it was checked and is confirmed in both directions.
  package var handle: Handle?
  /// The account's server: the one that the user set, or else the one that the document names.
  package var pds: String?
  /// The source of each fact.
  package var sources: Sources
  /// The warnings.
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

/// A problem of an identity that does not prevent its use.
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

  /// The sentence for people.
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
