internal import ATProtocol
internal import ArgumentParser
internal import Files
internal import IPLD
internal import Terminal
internal import Verification

/// Who has to have signed a commit, as far as the user says.
struct SignerOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The key that must have signed.", valueName: "did:key"))
  var key: String?

  @Option(
    help: ArgumentHelp("The account's PLC log or DID document.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var identity: String?

  /// Whether the user says anything of it.
  var isGiven: Bool { key != nil || identity != nil }

  /// Who signed a commit, as far as that was asked for.
  ///
  /// - Throws: ``Failure`` for a key or file that is none, and for a log that does not hold.
  func judge(_ commit: Commit) throws -> ProofLevels.Finding {
    if let key {
      return ProofLevels.Finding(commit, by: try VerificationKey(key, of: "--key"))
    }
    guard let identity else {
      return ProofLevels.Finding(
        nil, "not checked: use --identity or --key")
    }
    let bytes = try InputFile(identity).withBytes { $0.array }
    do {
      return try ProofLevels.Finding(commit, identity: bytes, now: try Host.unixTime)
    } catch let error where error is PLCLogError || error is PLCFault {
      throw Failure("\(identity): \(error)", status: .notGenuine, at: identity)
    }
  }
}

extension VerificationKey {
  /// The key that an option gives.
  ///
  /// - Throws: ``Failure`` for what is none.
  init(_ text: String, of option: String) throws {
    do throws(VerificationKeyError) {
      try self.init(didKey: text)
    } catch {
      throw Failure("\(option): \(error)", status: .usage)
    }
  }
}
