/// How things are extracted.
public struct ExtractionOptions: Sendable {
  /// What blobs are called.
  public enum Names: String, CaseIterable, Sendable {
    /// By their CIDs.
    case cid
    /// By the day, the key and the words of the record that refers to them.
    case readable
  }

  /// What blobs are called.
  public var names = Names.cid
  /// Whether files get the times of the records.
  public var setsTimes = true
  /// Whether files go that carpack wrote there, and that belong to the snapshot no longer.
  public var isDeleting = false

  /// As by default.
  public init() {}

  /// What has to take the names.
  var target: FileNaming.Target { names == .readable ? .any : .unix }
}
