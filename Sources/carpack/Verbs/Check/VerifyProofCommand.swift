internal import ATProtocol
internal import ArgumentParser
internal import Extraction
internal import Files
internal import IPLD
internal import Reports
internal import Terminal
internal import Verification

/// `carpack verify-proof`: what a proof of one record proves.
struct VerifyProofCommand: ReportingCommand {
  static let page = ManualPage("verify-proof", PackageResources.verify_proof_txt)

  @Option(help: ArgumentHelp("The record to check: collection/rkey.", valueName: "record"))
  var record: String?

  @Option(help: ArgumentHelp("The account that the proof must belong to.", valueName: "did"))
  var did: String?

  @Argument(
    help: ArgumentHelp("The proof, \"-\" for standard input.", valueName: "proof.car"),
    completion: .file(extensions: ["car"]))
  var file: String

  @OptionGroup var signer: SignerOptions

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let input = try InputFile(file)
    let path = try record.map(path)
    let proof = try Failure.naming(file) {
      try input.withBytes { bytes throws in try RecordProof(judging: bytes, of: path) }
    }
    if let did, proof.did.text != did {
      throw Failure(
        "the proof belongs to \(proof.did), not to \(did)", status: .notGenuine, at: file)
    }
    let verdict = try signer.judge(proof.commit)
    if json { Self.report.print((file, proof, verdict)) } else { printText(proof, verdict) }
    Console.flush()
    if verdict.isHeld == false {
      Console.say(.notGenuine, verdict.why)
      throw ExitStatus.notGenuine
    }
    guard signer.isGiven else {
      throw Failure(
        "the signature was not checked: anyone may have made this proof",
        hint: SignerOptions.hint, status: .incomplete, at: file)
    }
  }

  private func path(_ text: String) throws -> RecordPath {
    do throws(IdentifierError) { return try RecordPath(text) } catch {
      throw Failure("--record: \(error)", hint: "collection/rkey names one", status: .usage)
    }
  }

  private func printText(_ proof: RecordProof, _ verdict: ProofLevels.Finding) {
    let isThere = proof.finding != .absent
    let condition = verdict.isHeld == nil ? ", if the signature holds (not checked)" : ""
    if verdict.isHeld == false {
      Console.print("\(proof.path.text): the proof is not genuine, so its content is not shown")
    } else if case .record(let cid, let bytes) = proof.finding {
      Console.print("\(proof.path.text) was there\(condition): \(cid)")
      let rendering = RecordRendering(bytes.span)
      if rendering.isJSON { Console.print(rendering.bytes.span) }
    } else {
      Console.print("\(proof.path.text) was not there\(condition)")
    }
    let revision = proof.rev.map { " at \($0.text)" } ?? ""
    Console.print(
      [
        ("account", proof.did.text), ("commit", "\(proof.commitCID)\(revision)"),
        ("signed", verdict.why),
      ], width: 10)
    let surplus = proof.extraBlocks + proof.duplicateBlocks
    if surplus > 0, verdict.isHeld != false {
      common.say(
        .note,
        "\(Quantity.count(surplus, "block")) more than needed to prove that the record was \(isThere ? "" : "not ")there"
      )
    }
  }

  static let report = Report<(file: String, proof: RecordProof, verdict: ProofLevels.Finding)>(
    "verify-proof", "`carpack verify-proof`: what a proof of one record proves."
  ) {
    Field("file", "the proof") { $0.file }
    Field("did", "the account") { $0.proof.did }
    Field("rev", "its revision") { $0.proof.rev?.text }
    Field("commit", "its commit") { $0.proof.commitCID }
    Field("path", "collection/rkey") { $0.proof.path.text }
    Field("cid", "the record; null if it was not there") { subject -> CID? in
      if case .record(let cid, _) = subject.proof.finding { cid } else { nil }
    }
    Field(
      "signed",
      "whether an accepted key signed it, or else nothing is proven; null if not checked"
    ) { $0.verdict.isHeld }
    Field("why", "why") { $0.verdict.why }
    Field("extraBlocks", "blocks that the proof does not need") {
      $0.proof.extraBlocks + $0.proof.duplicateBlocks
    }
  }
}
