package import ATProtocol
package import Terminal

extension Failure {
  /// Prints the failure on standard error.
  package func say() {
    guard Console.isJSON else {
      Console.say(.error, message)
      if let hint { Console.say("hint: \(hint)") }
      return
    }
    Self.report.say(self)
  }

  /// Writes it as the field of an object.
  package func writeFields(to json: inout JSONWriter) { Self.field.write(self, &json) }

  package static let fields = Fields<Failure> {
    Field("status", "the exit status") { $0.status.number }
    Field("what", "what went wrong") { $0.message }
    Field("where", "the file, account or place that the error is about") {
      $0.place ?? Subject.current
    }
    Field("hint", "what to do") { $0.hint }
  }

  private static let field = Field<Failure>("error", "the error", \.self, as: fields)

  package static let report = Report<Failure>(
    "error", "What went wrong, on standard error; one object, whatever the verb."
  ) { field }
}
