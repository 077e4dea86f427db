internal import ArgumentParser

/// How much parity protects what is written.
struct ParityOptions: ConfigurableOptions {
  static let settings = [
    Setting(name: "parity", kind: .text, isGeneral: true)
  ]

  @Option(
    help: ArgumentHelp(
      "Protect the archive with this much parity, such as 5%, so that it can heal itself.",
      valueName: "percent"))
  var parity: Percentage?

  /// The percentage; nil for as much as the archive has.
  var percent: Int? { parity?.number }
}

/// A whole percentage from 1 to 100, with or without its sign: `5%`.
struct Percentage: ExpressibleByArgument {
  let number: Int

  init(_ number: Int) { self.number = number }

  init?(argument: String) {
    let digits = argument.hasSuffix("%") ? argument.dropLast() : argument[...]
    guard digits.allSatisfy({ ("0"..."9").contains($0) }), let number = Int(digits),
      (1...100).contains(number)
    else { return nil }
    self.number = number
  }

  var defaultValueDescription: String { "\(number)%" }
}
