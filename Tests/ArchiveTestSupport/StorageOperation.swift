/// What a writer asks of its storage.
public enum StorageOperation: String, CaseIterable, Sendable {
  case lock, size, read, write, synchronize, truncate
}

extension Set<StorageOperation> {
  /// All of them.
  public static var every: Self { Set(StorageOperation.allCases) }
}
