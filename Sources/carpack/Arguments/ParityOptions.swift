internal import ArgumentParser
internal import Keys

/// How much parity protects what is written.
struct ParityOptions: ConfigurableOptions {
  static let settings = [
    Setting(name: "parity", kind: .text, isGeneral: true)
  ]

  @Option(
    help: ArgumentHelp(
      "Protect the archive with this much parity, such as 5%, so that it can heal itself. Without it, a new archive has 5% if it is sealed, and else none; 0 is none.",
      valueName: "percent"))
  var parity: Percentage?

  /// The percentage; nil for as much as the archive has.
  var percent: Int? { parity.flatMap { $0.number > 0 ? $0.number : nil } }

  func validate() throws {
    if let parity { ArchiveKeys.use(parity: parity.number) }
  }
}

/// A whole percentage from 0 to 100, with or without its sign: `5%`.
struct Percentage: ExpressibleByArgument {
  let number: Int

  init(_ number: Int) { self.number = number }

  init?(argument: String) {
    let digits = argument.hasSuffix("%") ? argument.dropLast() : argument[...]
    guard digits.allSatisfy({ ("0"..."9").contains($0) }), let number = Int(digits),
      (0...100).contains(number)
    else { return nil }
    self.number = number
  }

  var defaultValueDescription: String { "\(number)%" }
}
