/// `app.bsky.actor.putPreferences`: settings of the app, in the place of all that the server has.
package struct PutPreferences: XRPCProcedure {
  /// Its name.
  package var nsid: String { "app.bsky.actor.putPreferences" }
  /// The same settings again come to the same.
  package static let isRepeatable = true

  /// The settings as JSON, an object with the list `preferences`, as `getPreferences` answers.
  package var input: [UInt8]

  /// Sends settings.
  package init(_ json: [UInt8]) { input = json }
}
