internal import ATProtocol
internal import ArgumentParser
internal import Extraction
internal import IPLD
internal import Live
internal import Snapshots
internal import Terminal

/// `carpack prove`: a proof that an account had a record, or did not, for a reader without the
/// archive.
struct ProveCommand: Verb {
  static let page = ManualPage("prove", PackageResources.prove_txt)

  @OptionGroup var output: FetchOutput

  @OptionGroup var archive: ArchiveArgument

  @Argument(
    help: ArgumentHelp(
      "collection/rkey, an at:// URI, the address of a post's page, or a key that only one record has.",
      valueName: "record"))
  var record: String

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var common: CommonOptions

  func run() throws {
    try output.check()
    try archive.read(prove)
  }

  private func prove(_ opened: OpenedArchive) throws {
    let archived = try opened.snapshot(choice, naming: [record])
    let path = try path(in: archived, opened)
    let text = path.text
    let proof = try RecordProof.make(of: path, commit: archived.snapshot.commit) { cid in
      try archived.repositoryBlock(cid).bytes
    }
    try output.write(.memory([proof]))
    let judged = try RecordProof(judging: proof.span, of: path)
    let isAbsent = judged.finding == .absent
    common.say(
      "\(text) \(isAbsent ? "is not in" : "is in") \(judged.did) at \(judged.rev?.text ?? "its commit"): \(Quantity.bytes(UInt64(proof.count))) of proof"
    )
    if output.output != "-" {
      // The proof of a record that is not there does not say which.
      let named = isAbsent ? " --record \(text.shellWord)" : ""
      common.say(
        "hint: \"carpack verify-proof \(output.output.shellWord)\(named) --identity FILE\" checks it"
      )
    }
    try opened.status.finish()
  }

  /// The record to prove: a named one, present or not, or the only one that a selector matches.
  private func path(in archived: ArchivedSnapshot, _ opened: OpenedArchive) throws -> RecordPath {
    guard case .records(let pattern, _) = try Selector(record) else {
      throw Failure(
        "\"\(record)\" does not name a record", hint: "collection/rkey names one", status: .usage)
    }
    let text: String
    if let exact = pattern.exactPath {
      text = exact
    } else {
      let items = try opened.explainingAbsence(of: [record], in: archived) {
        try Selection.items([record], in: archived)
      }
      guard case .record(let only)? = items.first, items.count == 1 else {
        throw Failure(
          "\"\(record)\" matches \(Quantity.count(items.count, "record"))",
          hint: "collection/rkey names one", status: .usage)
      }
      text = only
    }
    do throws(IdentifierError) {
      return try RecordPath(text)
    } catch {
      throw Failure("\"\(text)\" is not the path of a record: \(error)", status: .usage)
    }
  }
}
