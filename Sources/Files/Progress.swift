/// The progress of a long piece of work.
package struct Progress: Sendable {
  /// What is being done, in a word or two.
  package let stage: String
  /// How many bytes are done.
  package let done: UInt64
  /// How many there are; 0 if that is not known.
  package let total: UInt64

  /// The progress so far.
  package init(stage: String, done: UInt64, total: UInt64) {
    self.stage = stage
    self.done = done
    self.total = total
  }

  /// Receives progress; called often, so it decides itself when to show something.
  package typealias Observer = (Progress) -> Void
}
