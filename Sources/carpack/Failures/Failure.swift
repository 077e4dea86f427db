internal import ATProtocol
internal import IPLD

/// An error as a person reads it: what went wrong, what to do about it, and the exit status.
struct Failure: Error {
  let message: String
  let hint: String?
  let status: ExitStatus
  /// What it is about: a file, an account, or a place in a file.
  private(set) var place: String?

  init(_ message: String, hint: String? = nil, status: ExitStatus, at place: String? = nil) {
    self.message = message
    self.hint = hint
    self.status = status
    self.place = place
  }

  /// The same, said of a file or an account.
  func of(_ subject: String) -> Failure {
    let text = message.contains(subject) ? message : "\(subject): \(message)"
    return Failure(text, hint: hint, status: status, at: subject)
  }

  /// Does something with a file, whose name is in every error that comes of it.
  ///
  /// Errors about accounts, servers and words that select something already say what they are
  /// about; those of a format know bytes only.
  static func naming<Value>(_ file: String, _ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error where isOurs(error) {
      var failure = Failure(error)
      if error is any FormatError { failure = failure.of(file) }
      failure.place = failure.place ?? file
      throw failure
    }
  }

  /// An error; one that the command does not know is a failure of its own.
  init(_ error: any Error) {
    switch error {
    case let failure as Failure: self = failure
    case let error as any Explained:
      let (status, hint) = error.explanation
      self.init(error.sentence, hint: hint, status: status)
    case is CancellationError: self.init("interrupted", status: .interrupted)
    default: self.init("\(error)", status: .failure)
    }
  }

  /// Whether an error comes from here or the libraries, and not from the parsing of arguments.
  static func isOurs(_ error: any Error) -> Bool { error is Failure || error is any Explained }

  /// Says it on standard error.
  func say() {
    guard Console.isJSON else {
      Console.say(.error, message)
      if let hint { Console.say("hint: \(hint)") }
      return
    }
    Self.report.say(self)
  }

  /// Writes it as the field of an object.
  func writeFields(to json: inout JSONWriter) { Self.field.write(self, &json) }

  static let fields = Fields<Failure> {
    Field("status", "the exit status that it leads to") { $0.status.number }
    Field("what", "what went wrong") { $0.message }
    Field("where", "the file, account or place that it is about") { $0.place ?? Subject.current }
    Field("hint", "what to do") { $0.hint }
  }

  private static let field = Field<Failure>("error", "the error", \.self, as: fields)

  static let report = Report<Failure>(
    "error", "What went wrong, on standard error; one object, whatever the verb."
  ) { field }
}
