internal import Age
internal import ArgumentParser
internal import Keys
internal import Sealing

/// Whether the keys of sealed archives that are opened or made are kept.
struct KeyMemoryOption: ConfigurableOptions {
  static let settings = [Setting(name: "remember-key", kind: .flag)]

  @Flag(
    name: .customLong("remember-key"),
    help:
      "Keep the key of a sealed archive in ~/.config/carpack/keys, to append without --age-identity."
  )
  var remembersKey = false

  func validate() throws {
    if remembersKey { ArchiveKeys.rememberKeys() }
  }
}

/// The recipients to whom a new archive is sealed.
struct RecipientOptions: ConfigurableOptions {
  static let settings = [Setting(name: "recipient", kind: .list)]

  @Option(
    name: .customLong("recipient"),
    help: ArgumentHelp(
      "Seal a new archive, so that only the owner of this age recipient can read it; may be repeated.",
      valueName: "age1…"))
  var recipients: [String] = []

  @OptionGroup var memory: KeyMemoryOption

  func validate() throws {
    guard !recipients.isEmpty else { return }
    ArchiveKeys.use(recipients: try recipients.map(SealedRecipient.init(named:)))
  }
}

extension SealedRecipient {
  /// A recipient by its text.
  ///
  /// - Throws: `ValidationError` for a text that is not a recipient.
  init(named text: String) throws {
    do {
      self = .key(try AgeRecipient(parsing: text))
    } catch {
      throw ValidationError("\"\(text)\": \(error)")
    }
  }
}
