/// How far a long piece of work has come.
public struct Progress: Sendable {
  /// What is being done, in a word or two.
  public let stage: String
  /// How many bytes are done.
  public let done: UInt64
  /// How many there are; 0 if that is not known.
  public let total: UInt64

  /// Receives progress; called often, so it decides itself when to show something.
  public typealias Observer = (Progress) -> Void
}
