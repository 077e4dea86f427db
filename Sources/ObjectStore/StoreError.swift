internal import HTTP

/// Why a store did not do what it was asked.
package struct StoreError: NetworkFault, Equatable, Sendable, CustomStringConvertible {
  /// What kind of refusal it is.
  package enum Kind: Equatable, Sendable {
    /// The object does not exist.
    case noSuchObject
    /// The bucket does not exist.
    case noSuchBucket
    /// The upload does not exist: it was completed, or given up.
    case noSuchUpload
    /// The store does not allow this user to do it.
    case denied
    /// No credentials were found, or they cannot be used.
    case noCredentials
    /// The object is not the one that was meant: a condition did not hold.
    case conditionFailed
    /// The store is too busy, or broken for now.
    case unavailable
    /// The store cannot do that, now or later.
    case unsupported
    /// The store does not copy parts of existing objects.
    case cannotCopy
    /// What was named is not an address in a store; no request was made.
    case noAddress
    /// Anything else that it refuses.
    case refused
    /// It answered a write with a success that does not say what was made: perhaps nothing.
    case unconfirmed
    /// Its answer is not what an object store answers.
    case malformed
  }

  /// What kind it is.
  package let kind: Kind
  /// The status of the answer; nil if nothing was asked.
  package let status: Int?
  /// The store's name for it, such as `NoSuchKey`; nil if it gave none.
  package let code: String?
  /// What happened, in words, with what was requested.
  package let description: String

  /// Whether the store may do it some time later.
  package var mayPass: Bool { kind == .unavailable }

  /// An error.
  package init(_ kind: Kind, _ description: String, status: Int? = nil, code: String? = nil) {
    (self.kind, self.description) = (kind, description)
    (self.status, self.code) = (status, code)
  }
}
