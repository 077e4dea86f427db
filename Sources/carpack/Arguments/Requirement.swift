internal import ArgumentParser
internal import Terminal

/// Refuses options that do not go together.
///
/// - Throws: `ValidationError` with the message, if the condition does not hold.
func require(_ condition: Bool, _ message: String) throws {
  guard condition else { throw ValidationError(message) }
}

/// Reads a value that was given.
///
/// - Throws: ``Failure`` that begins with these words, if it cannot be read.
func reading<Value>(_ words: String, _ read: () throws -> Value) throws -> Value {
  do {
    return try read()
  } catch {
    throw Failure("\(words): \(error)", status: .usage)
  }
}
