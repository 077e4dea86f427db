internal import IPLD

/// `com.atproto.server.describeServer`: what a server says of itself.
public struct DescribeServer: XRPCQuery {
  /// Its name.
  public static let nsid = "com.atproto.server.describeServer"

  /// Asks a server.
  public init() {}

  /// What it says.
  public struct Output: Sendable, Equatable {
    /// Its DID, as it writes it; ports occur in it that a DID of an account does not have.
    public var did: String?
    /// The domains under which it gives out handles.
    public var availableUserDomains: [String]
    /// How large a blob may be that is uploaded, in bytes.
    public var blobUploadLimit: Int?
  }

  /// Reads the answer.
  public static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    guard answer.json.map != nil else { throw AnswerFault("it is no object") }
    return Output(
      did: answer.optionalText("did"),
      availableUserDomains: (answer.json["availableUserDomains"]?.array ?? []).compactMap(\.string),
      blobUploadLimit: answer.json["blobUploadLimit"]?.integer)
  }
}
