internal import ArgumentParser

/// Refuses options that do not go together.
///
/// - Throws: `ValidationError` with the message, if the condition does not hold.
func require(_ condition: Bool, _ message: String) throws {
  guard condition else { throw ValidationError(message) }
}
