/// Why a text cannot be read as a TOML document, and on which line.
package struct TOMLError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What is wrong.
  package enum Reason: Equatable, Sendable {
    /// The document has more than ``TOMLDocument/maximumLength`` bytes.
    case tooLong
    /// Keys, lists or tables are nested deeper than ``TOMLDocument/maximumDepth``.
    case tooDeep
    /// The bytes are not UTF-8.
    case notUTF8
    /// A control character stands where none may.
    case controlCharacter
    /// Something else was expected here.
    case expected(String)
    /// A text does not end where it has to.
    case unterminatedString
    /// A backslash is followed by what is not an escape.
    case malformedEscape
    /// A value has no form of TOML.
    case malformedValue
    /// A whole number does not fit into 64 bits.
    case numberTooLarge
    /// A date or time, which is not supported.
    case date
    /// A key is already set.
    case duplicateKey(String)
    /// A table is defined already, or the key is that of something else.
    case duplicateTable(String)
  }

  /// What is wrong.
  package let reason: Reason
  /// The line, the first being 1.
  package let line: Int

  init(_ reason: Reason, line: Int) {
    self.reason = reason
    self.line = line
  }

  /// The message for people.
  package var description: String { "line \(line): \(what)" }

  /// What is wrong, without the line.
  package var what: String {
    switch reason {
    case .tooLong: "longer than \(TOMLDocument.maximumLength) bytes"
    case .tooDeep: "nested deeper than \(TOMLDocument.maximumDepth) levels"
    case .notUTF8: "not UTF-8"
    case .controlCharacter: "a control character"
    case .expected(let what): "\(what) is expected here"
    case .unterminatedString: "a text without its closing quotation mark"
    case .malformedEscape:
      "an unknown escape after a backslash; text in '…' takes backslashes as they are"
    case .malformedValue: "not a value; text must be in quotation marks"
    case .numberTooLarge: "a number too large"
    case .date: "dates and times are not read here; put them in quotation marks"
    case .duplicateKey(let key): "\"\(key)\" is set twice"
    case .duplicateTable(let key): "the table \"\(key)\" is defined already"
    }
  }
}
