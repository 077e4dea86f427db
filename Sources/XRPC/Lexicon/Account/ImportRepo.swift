package import HTTP

/// `com.atproto.repo.importRepo`: puts the records of a CAR in the place of those that the account
/// has.
package struct ImportRepo: XRPCUpload {
  /// Its name.
  package var nsid: String { "com.atproto.repo.importRepo" }
  /// A CAR.
  package var contentType: String { "application/vnd.ipld.car" }
  /// Half an hour: the reference server takes 400 µs a record, and says nothing before it is done.
  package static let patience = 1800

  /// The CAR.
  package var body: RequestBody

  /// Sends a CAR.
  package init(_ car: RequestBody) { body = car }
}
