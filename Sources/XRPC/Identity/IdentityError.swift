package import ATProtocol
package import HTTP

/// Why an account could not be resolved.
package enum IdentityError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The handle is one that no account can have, or one that only a server of a developer's own
  /// knows, and none was named.
  case unresolvableHandle(Handle)
  /// The handle leads to no DID: the questions and their results.
  case handleNotFound(Handle, [String])
  /// The handle could not be asked about: the attempts and their results.
  case handleUnreachable(Handle, [String])
  /// The handle leads to a private address: the attempts and their results.
  case handleRefused(Handle, [String])
  /// The server that was asked about the handle has an invalid certificate: the attempts and their
  /// results.
  case handleUntrusted(Handle, [String])
  /// DNS names several DIDs for a handle.
  case ambiguousHandle(Handle, [DID])
  /// The DID is of a method other than `plc` and `web`, or of a form that these do not have.
  case unsupportedDID(DID)
  /// The DID names a host that is not on the public internet.
  case privateHost(DID)
  /// The directory, or the host of a `did:web`, has nothing about the DID.
  case didNotFound(DID)
  /// The DID has existed, and was deleted.
  case didGone(DID)
  /// No answer came: to which question, and why.
  case noAnswer(String, TransportError)
  /// The answer is not a successful one: to which question, the status, and what came.
  case unexpectedAnswer(String, status: Int, String)
  /// What came as a DID document is not one.
  case malformedDocument(DID, DIDDocumentError)
  /// What came is the DID document of another account.
  case otherDocument(DID, found: DID)

  /// What an error means to the caller.
  package enum Kind: Hashable, Sendable {
    /// The account is gone, or the server does not answer for it.
    case unavailable
    /// It may succeed later.
    case temporary
    /// The identity is not valid.
    case notGenuine
    /// It was not asked, or not believed, because it should not be.
    case refused
  }

  /// What it means to the caller.
  package var kind: Kind {
    switch self {
    case .unresolvableHandle, .handleNotFound, .handleUntrusted, .unsupportedDID, .didNotFound,
      .didGone, .malformedDocument:
      .unavailable
    case .handleUnreachable: .temporary
    case .handleRefused, .privateHost: .refused
    case .ambiguousHandle, .otherDocument: .notGenuine
    case .unexpectedAnswer(_, let status, _):
      HTTPStatus.mayPass(status) ? .temporary : .unavailable
    case .noAnswer(_, let error):
      switch error.reason {
      case _ where error.mayPass: .temporary
      case .refusedAddress, .refusedRedirect, .tooManyRedirects, .tooLong, .unusableURL: .refused
      default: .unavailable
      }
    }
  }

  /// The sentence for people.
  package var description: String {
    switch self {
    case .unresolvableHandle(let handle):
      "\(handle) is a reserved name, so it was not looked up"
    case .handleNotFound(let handle, let attempts):
      "\(handle) leads to no account: \(attempts.joined(separator: "; "))"
    case .handleUnreachable(let handle, let attempts), .handleRefused(let handle, let attempts),
      .handleUntrusted(let handle, let attempts):
      "could not resolve \(handle): \(attempts.joined(separator: "; "))"
    case .ambiguousHandle(let handle, let dids):
      "\(handle) leads to more than one account: \(dids.map(\.text).joined(separator: ", "))"
    case .unsupportedDID(let did): "\(did) is not the DID of an account (did:plc or did:web)"
    case .privateHost(let did): "\(did) names a host that is not on the public internet"
    case .didNotFound(let did): "\(did) was not found"
    case .didGone(let did): "\(did) was deleted"
    case .noAnswer(let question, let error): "could not get \(question): \(error)"
    case .unexpectedAnswer(let question, let status, let body):
      "could not get \(question): the server answered \(status)\(body.isEmpty ? "" : ", \(body)")"
    case .malformedDocument(let did, let error): "the response for \(did) is unusable: \(error)"
    case .otherDocument(let did, let found):
      "the response for \(did) is the DID document of \(found)"
    }
  }

  /// The beginning of what a server answered, on one line, for a message; of an XRPC error its
  /// words.
  static func excerpt(_ body: [UInt8]) -> String {
    if let answer = Answer(body), let name = answer.optionalText("error") {
      let message = answer.optionalText("message").map { ": \($0)" } ?? ""
      return Excerpt.of(name + message)
    }
    let shown = Excerpt.of(body)
    return shown.isEmpty ? "" : "\"\(shown)\""
  }
}
