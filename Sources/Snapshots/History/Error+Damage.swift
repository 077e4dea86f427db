internal import Archive

/// What is read of an archive; nil if it is damaged or not there.
///
/// - Throws: what `read` throws about anything else.
package func unlessDamaged<Value>(_ read: () throws -> Value) throws -> Value? {
  do {
    return try read()
  } catch let error where error.isDamage {
    return nil
  }
}

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
