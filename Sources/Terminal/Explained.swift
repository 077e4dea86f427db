package import IPLD

/// An error that the command knows: what it means to the user.
///
/// Each type of error does this in one place. An error of any other type is a defect of
/// carpack, and ends with status 1.
package protocol Explained: Error {
  /// The exit status, and what to do about it.
  var explanation: Explanation { get }
  /// What a person reads.
  var sentence: String { get }
}

/// An exit status, and what to do about it; nil if there is nothing to say.
package typealias Explanation = (status: ExitStatus, hint: String?)

extension Explained {
  /// Its own words.
  package var sentence: String { "\(self)" }
}

/// An error about the bytes of a file, such as that they are not of the format that they should be:
/// it knows where in them, and not of which file they are.
package protocol FormatError: Explained {}

extension FormatError {
  /// They are damaged, unless it says otherwise.
  package var explanation: Explanation { (ExitStatus(faultKind ?? .damage), nil) }
}

extension ExitStatus {
  /// What an error of this kind ends with where nothing more exact is known.
  package init(_ kind: FaultKind) {
    self =
      switch kind {
      case .system: .ioError
      case .damage: .damaged
      case .absence: .noInput
      case .refused, .limit: .refused
      case .notGenuine: .notGenuine
      }
  }
}
