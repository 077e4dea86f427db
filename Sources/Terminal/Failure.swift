internal import ATProtocol
internal import IPLD

/// An error as a person reads it: what went wrong, what to do about it, and the exit status.
package struct Failure: Error {
  /// What went wrong, without secret keys.
  package let message: String
  package let hint: String?
  package let status: ExitStatus
  /// What it is about: a file, an account, or a place in a file.
  package private(set) var place: String?

  package init(_ message: String, hint: String? = nil, status: ExitStatus, at place: String? = nil)
  {
    self.message = message.withoutSecretKeys
    self.hint = hint?.withoutSecretKeys
    self.status = status
    self.place = place?.withoutSecretKeys
  }

  /// The same failure, with a file or an account named.
  package func of(_ subject: String) -> Failure {
    let text = message.contains(subject) ? message : "\(subject): \(message)"
    return Failure(text, hint: hint, status: status, at: subject)
  }

  /// Runs `body`, and adds the file's name to every error.
  ///
  /// Errors about accounts, servers and words that select something already say what they are
  /// about; those of a format know bytes only.
  package static func naming<Value>(_ file: String, _ body: () throws -> Value) throws -> Value {
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
  package init(_ error: any Error) {
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
  package static func isOurs(_ error: any Error) -> Bool {
    error is Failure || error is any Explained
  }
}
