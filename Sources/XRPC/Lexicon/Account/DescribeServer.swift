public import ATProtocol
internal import IPLD

/// `com.atproto.server.describeServer`: what a server says of itself to those who want an account.
public struct DescribeServer: XRPCQuery {
  /// Its name.
  public var nsid: String { "com.atproto.server.describeServer" }

  /// Asks for it.
  public init() {}

  /// What it says.
  public struct Output: Sendable, Equatable {
    /// The server's own DID, which tokens for it name.
    public var did: DID
    /// The domains under which it gives out handles, each with a dot in front.
    public var userDomains: [String]
    /// Whether an account needs an invite code.
    public var isInviteRequired: Bool
    /// How long a blob may be, in bytes; nil if it does not say.
    public var blobLimit: UInt64?
  }

  /// Reads the answer.
  public static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    Output(
      did: try answer.identifier("did", DID.self),
      userDomains: (answer.json["availableUserDomains"]?.array ?? []).compactMap(\.string),
      isInviteRequired: answer.flag("inviteCodeRequired") ?? false,
      blobLimit: answer.json["blobUploadLimit"]?.integer.flatMap { UInt64(exactly: $0) })
  }
}
