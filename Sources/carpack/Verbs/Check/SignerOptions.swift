internal import ATProtocol
internal import ArgumentParser
internal import Files
internal import IPLD
internal import Terminal
internal import Verification

/// The key or identity that must have signed a commit, if the user gave one.
struct SignerOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The key that must have signed.", valueName: "did:key"))
  var key: String?

  @Option(
    help: ArgumentHelp("The account's PLC log or DID document.", valueName: "file"),
    completion: .file(extensions: ["json"]))
  var identity: String?

  /// Whether the user gave either.
  var isGiven: Bool { key != nil || identity != nil }

  /// What they take.
  static let hint =
    "give --key, or with --identity the account's PLC log (\"carpack fetch plc-log\") or DID document"

  /// Checks who signed a commit, if the user gave a key or an identity.
  ///
  /// - Throws: ``Failure`` for an invalid key or file, and for a log that fails verification.
  func judge(_ commit: Commit) throws -> ProofLevels.Finding {
    if let key {
      return ProofLevels.Finding(commit, by: try VerificationKey(key, of: "--key"))
    }
    guard let identity else {
      return ProofLevels.Finding(nil, "not checked: give --key or --identity")
    }
    let bytes = try InputFile(identity).withBytes { $0.array }
    do {
      return try ProofLevels.Finding(commit, identity: bytes, now: try Host.unixTime)
    } catch let error as PLCFault {
      throw Failure("\(identity): \(error)", status: .notGenuine, at: identity)
    } catch let error as PLCLogError {
      // The file may be a bad one, and the commit good.
      throw Failure(
        "\(identity): \(error)", hint: Self.hint, status: Failure(error).status, at: identity)
    }
  }
}

extension VerificationKey {
  /// The key that an option gives.
  ///
  /// - Throws: ``Failure`` if the text is not a key.
  init(_ text: String, of option: String) throws {
    do throws(VerificationKeyError) {
      try self.init(didKey: text)
    } catch {
      throw Failure("\(option): \(error)", status: .usage)
    }
  }
}
