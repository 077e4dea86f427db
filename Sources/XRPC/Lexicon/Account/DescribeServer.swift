package import ATProtocol
internal import IPLD

/// `com.atproto.server.describeServer`: what a server says of itself to those who want an account.
package struct DescribeServer: XRPCQuery {
  /// Its name.
  package var nsid: String { "com.atproto.server.describeServer" }

  /// Asks for it.
  package init() {}

  /// What it says.
  package struct Output: Sendable, Equatable {
    /// The server's own DID, which tokens for it name.
    package var did: DID
    /// The domains under which it gives out handles, each with a dot in front.
    package var userDomains: [String]
    /// Whether an account needs an invite code.
    package var isInviteRequired: Bool
    /// How long a blob may be, in bytes; nil if it does not say.
    package var blobLimit: UInt64?
  }

  /// Reads the answer.
  package static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    Output(
      did: try answer.identifier("did", DID.self),
      userDomains: (answer.json["availableUserDomains"]?.array ?? []).compactMap(\.string),
      isInviteRequired: answer.flag("inviteCodeRequired") ?? false,
      blobLimit: answer.json["blobUploadLimit"]?.integer.flatMap { UInt64(exactly: $0) })
  }
}
