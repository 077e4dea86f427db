/// `app.bsky.actor.putPreferences`: settings of the app, in the place of all that the server has.
public struct PutPreferences: XRPCProcedure {
  /// Its name.
  public var nsid: String { "app.bsky.actor.putPreferences" }
  /// The same settings again come to the same.
  public static let isRepeatable = true

  /// The settings as JSON, an object with the list `preferences`, as `getPreferences` answers.
  public var input: [UInt8]

  /// Sends settings.
  public init(_ json: [UInt8]) { input = json }
}
