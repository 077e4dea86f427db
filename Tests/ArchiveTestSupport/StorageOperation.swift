/// What a writer asks of its storage.
package enum StorageOperation: String, CaseIterable, Sendable {
  case lock, size, read, write, synchronize, truncate
}

extension Set<StorageOperation> {
  /// All of them.
  package static var every: Self { Set(StorageOperation.allCases) }
}
