internal import ATProtocol

/// `com.atproto.server.activateAccount`: has the server speak for the account, once its DID's
/// document leads there.
public struct ActivateAccount: XRPCProcedure {
  /// Its name.
  public var nsid: String { "com.atproto.server.activateAccount" }
  /// Activating what is active changes nothing.
  public static let isRepeatable = true

  /// Asks for it.
  public init() {}
}

/// `com.atproto.server.deactivateAccount`: has the server speak for the account no more.
public struct DeactivateAccount: XRPCProcedure {
  /// Its name.
  public var nsid: String { "com.atproto.server.deactivateAccount" }
  /// Deactivating what is not active changes nothing.
  public static let isRepeatable = true

  /// When the server may delete it, in RFC 3339; nil for never.
  public var deleteAfter: String?

  /// Asks for it.
  public init(deleteAfter: String? = nil) { self.deleteAfter = deleteAfter }

  /// What is sent along: an object, even an empty one.
  public var input: [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    if let deleteAfter { json.field("deleteAfter", deleteAfter) }
    json.endObject()
    return json.takeBytes()
  }
}
