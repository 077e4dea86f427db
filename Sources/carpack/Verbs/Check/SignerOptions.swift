internal import ATProtocol
internal import ArgumentParser
internal import Files
internal import IPLD
internal import Terminal
internal import Verification

/// Who has to have signed a commit, as far as the user says.
struct SignerOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The key that has to have signed.", valueName: "did:key"))
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
      do throws(VerificationKeyError) {
        return ProofLevels.Finding(commit, by: try VerificationKey(didKey: key))
      } catch {
        throw Failure("--key: \(error)", status: .usage)
      }
    }
    guard let identity else {
      return ProofLevels.Finding(
        nil, "not looked at: --identity or --key says who may have signed")
    }
    let now = try Host.unixTime
    let bytes = try InputFile(identity).withBytes { $0.array }
    let verdict: SignatureVerdict
    do {
      if let document = Self.document(bytes) {
        verdict = document.judge(commit, now: now)
      } else {
        let log = try PLCLog(bytes.span, of: commit.did)
        verdict = try PLCHistory(validating: log, of: commit.did).judge(commit, now: now)
      }
    } catch let error where error is PLCLogError || error is PLCFault {
      throw Failure("\(identity): \(error)", status: .notGenuine, at: identity)
    }
    return ProofLevels.Finding(verdict)
  }

  private static func document(_ bytes: [UInt8]) -> DIDDocument? {
    do throws(DIDDocumentError) { return try DIDDocument(bytes.span) } catch { return nil }
  }
}
