internal import Archive

/// A failure that a storage is set to have: the n-th operation of some kinds does not do what it
/// should.
package struct StorageFault: Sendable, CustomStringConvertible {
  /// For how long it lasts.
  package enum Duration: String, CaseIterable, Sendable {
    /// The operations after it succeed.
    case once
    /// All operations of these kinds after it fail as well.
    case forEver
  }

  /// Which operations count, and may fail.
  package var operations: Set<StorageOperation>
  /// Which of those fails, counted from 1.
  package var number: Int
  /// For how long.
  package var duration: Duration
  /// The `errno`.
  package var code: CInt
  /// How much of a write that fails reaches the file anyway, from 0 to 1.
  package var part: Double

  /// A fault of the n-th operation.
  package init(
    _ number: Int, of operations: Set<StorageOperation> = .every, _ duration: Duration = .once,
    code: CInt = Self.inputOutput, part: Double = 0
  ) {
    self.operations = operations
    self.number = number
    self.duration = duration
    self.code = code
    self.part = part
  }

  /// `EIO`, the same number on every system.
  package static let inputOutput: CInt = 5
  /// `ENOSPC`, the same number on every system.
  package static let noSpace: CInt = 28

  /// Whether the operation that is the `count`-th of its kinds fails.
  func strikes(_ count: Int) -> Bool {
    switch duration {
    case .once: count == number
    case .forEver: count >= number
    }
  }

  /// The error that a storage throws for it, as the real one would.
  func error(_ operation: StorageOperation) -> ArchiveError {
    ArchiveError(.system(operation: operation.rawValue, code: code))
  }

  /// What a person reads.
  package var description: String {
    let kinds =
      operations == .every
      ? "operation" : operations.map(\.rawValue).sorted().joined(separator: "/")
    return "\(kinds) \(number) fails \(duration == .once ? "once" : "for ever") with errno \(code)"
      + (part > 0 ? ", \(Int(part * 100)) % written" : "")
  }
}
