/// What had to be done to read a file that is not as a writer leaves it.
public struct Recovery: Equatable, Sendable {
  /// Why the index was read from the frames.
  public enum Rebuild: Equatable, Sendable {
    /// No footer holds: nothing was committed, or the end of the file is lost.
    case noFooter
    /// An index segment is damaged: where it begins.
    case damagedIndex(offset: UInt64)
  }

  /// How many bytes follow the last footer; they are ignored.
  public var interruptedTail: UInt64
  /// Why the index was read from the frames; nil if the one in the file was used.
  public var rebuild: Rebuild?

  /// A record of what was done.
  public init(interruptedTail: UInt64 = 0, rebuild: Rebuild? = nil) {
    self.interruptedTail = interruptedTail
    self.rebuild = rebuild
  }
}
