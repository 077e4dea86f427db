/// `com.atproto.repo.importRepo`: puts the records of a CAR in the place of those that the account
/// has.
public struct ImportRepo: XRPCUpload {
  /// Its name.
  public var nsid: String { "com.atproto.repo.importRepo" }
  /// A CAR.
  public var contentType: String { "application/vnd.ipld.car" }
  /// Half an hour: the reference server takes 400 µs a record, and says nothing before it is done.
  public static let patience = 1800

  /// The CAR.
  public var body: RequestBody

  /// Sends a CAR.
  public init(_ car: RequestBody) { body = car }
}
