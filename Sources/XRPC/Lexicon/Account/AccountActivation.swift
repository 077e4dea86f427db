internal import ATProtocol

/// `com.atproto.server.activateAccount`: has the server speak for the account, once its DID's
/// document leads there.
package struct ActivateAccount: XRPCProcedure {
  /// Its name.
  package var nsid: String { "com.atproto.server.activateAccount" }
  /// Activating what is active changes nothing.
  package static let isRepeatable = true

  /// Asks for it.
  package init() {}
}

/// `com.atproto.server.deactivateAccount`: has the server speak for the account no more.
package struct DeactivateAccount: XRPCProcedure {
  /// Its name.
  package var nsid: String { "com.atproto.server.deactivateAccount" }
  /// Deactivating what is not active changes nothing.
  package static let isRepeatable = true

  /// When the server may delete it, in RFC 3339; nil for never.
  package var deleteAfter: String?

  /// Asks for it.
  package init(deleteAfter: String? = nil) { self.deleteAfter = deleteAfter }

  /// What is sent along: an object, even an empty one.
  package var input: [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    if let deleteAfter { json.field("deleteAfter", deleteAfter) }
    json.endObject()
    return json.takeBytes()
  }
}
