internal import Archive

extension Error {
  /// Whether it says that bytes read from an archive are not what they must be, or not there.
  package var isDamage: Bool {
    switch self {
    case let error as ArchiveError: error.reason.isDamage
    case is SnapshotError: true
    default: false
    }
  }
}
