package import TestSupport

/// A command that is about to be run, and what it waits for.
package struct FrozenStage: Sendable {
  /// Runs it.
  package var start: @Sendable () throws -> RunningCommand
  /// What it waits for, with a name for each.
  package var partners: [(name: String, partner: any FrozenPartner)]
  /// What is there when it has completed: names of files, of objects, of uploads.
  package var state: @Sendable () -> [String]
  /// Removes what the scene has in other places.
  package var finish: @Sendable () -> Void = {}
  /// How often it is sent the signal.
  package var signals = 1
  /// How many seconds it may take to end beyond what all commands may.
  package var grace = 0.0
  /// How many seconds go by before it is run again: what is leased and cannot be given back comes
  /// free by itself.
  package var rest = 0.0
  /// The status that it ends with after a signal; nil for the signal's.
  package var status: Int32?

  /// A command; the partners have been asked nothing so far.
  package init(
    _ partners: [(name: String, partner: any FrozenPartner)],
    state: @escaping @Sendable () -> [String] = { [] },
    start: @escaping @Sendable () throws -> RunningCommand
  ) {
    (self.partners, self.state, self.start) = (partners, state, start)
    for (_, partner) in partners { partner.forgetCalls() }
  }
}

/// A verb that waits for something, and how it is brought to do so.
package struct FrozenVerb: Sendable {
  /// What it is called in the matrix.
  package let name: String
  /// A new scene, each time it is called.
  package let stage: @Sendable () throws -> FrozenStage

  package init(_ name: String, _ stage: @escaping @Sendable () throws -> FrozenStage) {
    (self.name, self.stage) = (name, stage)
  }
}
