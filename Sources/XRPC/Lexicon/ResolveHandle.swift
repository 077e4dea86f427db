public import ATProtocol

/// `com.atproto.identity.resolveHandle`: whose a handle is, by the word of a server.
public struct ResolveHandle: XRPCQuery {
  /// The errors it declares.
  public enum DeclaredError: String, Sendable, CaseIterable {
    /// It leads nowhere.
    case handleNotFound = "HandleNotFound"
  }

  /// Its name.
  public static let nsid = "com.atproto.identity.resolveHandle"

  /// The handle.
  public var handle: Handle

  /// Asks about a handle.
  public init(handle: Handle) { self.handle = handle }

  /// The query.
  public var parameters: [(name: String, value: String)] { [("handle", handle.text)] }

  /// Reads the answer.
  public static func read(_ answer: Answer) throws(AnswerFault) -> DID {
    try answer.identifier("did", DID.self)
  }
}
