/// What an error says: what whoever meets it has to know in order to go on, or to end.
///
/// The type of an error says who found it out; this says what follows from it.
public enum FaultKind: Sendable, CaseIterable {
  /// The system refused something, or something came between: it says nothing of what was read.
  case system
  /// Bytes are not what they must be, or are lost.
  case damage
  /// What was asked for is not there, and nothing says that it should be.
  case absence
  /// It is not done, whatever the bytes are.
  case refused
  /// There is more of something than a limit allows; nothing is wrong with it otherwise.
  case limit
  /// It is not from whom it says it is.
  case notGenuine
}

/// An error that says of which kind it is.
public protocol KnownFault: Error {
  /// What it says.
  var faultKind: FaultKind { get }
}

extension Error {
  /// What it says; nil of one that does not tell.
  public var faultKind: FaultKind? {
    guard let fault = self as? any KnownFault else { return nil }
    // By its type the requirement is meant, and not this property.
    let kind: FaultKind = fault.faultKind
    return kind
  }

  /// Whether it says that what was to be read is damaged or missing, so that whoever can do without
  /// continues.
  package var isLoss: Bool { faultKind == .damage || faultKind == .absence }

  /// What is wrong with what was read, by this error.
  ///
  /// - Throws: the error itself, if it says nothing of that.
  package func flaw() throws -> String {
    switch faultKind {
    case .system, .limit: throw self
    default: return "\(self)"
    }
  }
}

extension CancellationError: KnownFault {
  /// The work was ended.
  public var faultKind: FaultKind { .system }
}
