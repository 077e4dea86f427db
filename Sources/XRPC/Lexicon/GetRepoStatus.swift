public import ATProtocol

/// `com.atproto.sync.getRepoStatus`: whether an account is active, and if not, why.
public struct GetRepoStatus: XRPCQuery {
  /// What it declares.
  public typealias DeclaredError = RepoError
  /// Its name.
  public static let nsid = "com.atproto.sync.getRepoStatus"

  /// The account.
  public var did: DID

  /// Asks about an account.
  public init(did: DID) { self.did = did }

  /// The query.
  public var parameters: [(name: String, value: String)] { [("did", did.text)] }

  /// How an account stands.
  public struct Output: Sendable, Equatable {
    /// Whether it is active.
    public var active: Bool
    /// Why it is not: `takendown`, `suspended`, `deleted`, `deactivated`, `desynchronized`, `throttled`, or what else a server says.
    public var status: String?
    /// The revision; not every server says it.
    public var rev: TID?
  }

  /// Reads the answer.
  public static func read(_ answer: Answer) throws(AnswerFault) -> Output {
    guard let active = answer.flag("active") else { throw AnswerFault("it has no active") }
    return Output(
      active: active, status: answer.optionalText("status"),
      rev: answer.optionalIdentifier("rev", TID.self))
  }
}
