internal import Files

/// How things are extracted.
package struct ExtractionOptions: Sendable {
  /// What blobs are called.
  package enum Names: String, CaseIterable, Sendable {
    /// By their CIDs.
    case cid
    /// By the day, the key and the words of the record that refers to them.
    case readable
  }

  /// What blobs are called.
  package var names = Names.cid
  /// Whether files get the times of the records.
  package var setsTimes = true
  /// Whether files go that carpack wrote there, and that belong to the snapshot no longer.
  package var isDeleting = false

  /// As by default.
  package init() {}

  /// What has to take the names.
  var target: FileNaming.Target { names == .readable ? .any : .unix }
}
