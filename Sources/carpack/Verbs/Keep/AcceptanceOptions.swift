internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Copying
internal import IPLD
internal import Snapshots
internal import SystemPackage

/// Accepting losses, and taking that back: what `missing` changes if it is asked to.
struct AcceptanceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Accept that a missing blob is lost, or that all are; may be repeated.",
      valueName: "cid|all"))
  var accept: [String] = []

  @Option(
    help: ArgumentHelp("Why the losses are accepted; kept in the archive.", valueName: "text"))
  var reason: String?

  @Option(
    help: ArgumentHelp(
      "Take back that the loss of a blob, or of all, was accepted; may be repeated.",
      valueName: "cid|all"))
  var reconsider: [String] = []

  func validate() throws {
    try require(
      accept.isEmpty || reconsider.isEmpty, "--accept and --reconsider are for one run each")
    if let reason {
      try require(!accept.isEmpty, "--reason goes with --accept")
      try require(
        1...BlobLedger.Acceptance.maximumReason ~= reason.utf8.count,
        "--reason takes 1 to \(BlobLedger.Acceptance.maximumReason) bytes of text")
    }
    _ = try blobs
  }

  /// What is to be changed; nil if nothing is.
  var change: LossAcceptance? {
    get throws {
      let blobs = try blobs
      guard !(accept + reconsider).isEmpty else { return nil }
      return LossAcceptance(
        of: blobs,
        accept.isEmpty ? nil : BlobLedger.Acceptance(date: Host.now, reason: reason))
    }
  }

  /// The blobs that are named; nil for all.
  private var blobs: [CID]? {
    get throws {
      let words = accept + reconsider
      let cids = try words.filter { $0 != "all" }.map { word in
        do throws(CIDError) {
          return try CID(word)
        } catch {
          throw ValidationError("\"\(word)\" is neither a CID nor \"all\"")
        }
      }
      return words.contains("all") ? nil : cids
    }
  }

  /// Makes the change in an archive, and says what came of it.
  func apply(
    _ change: LossAcceptance, to file: String, account: String?, _ common: CommonOptions
  ) throws {
    try CARInput.refuse(file)
    let report = try change.apply(to: try FileStorage.open(FilePath(file)), name: file) { history in
      try history.account(account)
    }
    if Console.isJSON { return Self.report.print((file, accepts: !accept.isEmpty, report)) }
    let done = Quantity.count(report.changedCount, "loss", "losses")
    let now = Quantity.count(report.acceptedCount, "loss is", "losses are")
    common.say(
      "\(file): \(done) \(accept.isEmpty ? "to be asked for again" : "accepted"), \(Quantity.bytes(report.bytesAdded)) added; \(now) accepted now, \(Quantity.count(report.missingCount, "blob")) missing otherwise"
    )
  }

  static let report = Report<(file: String, accepts: Bool, result: LossAcceptance.Report)>(
    "acceptance", "`carpack missing --accept` and `--reconsider`."
  ) {
    ArchiveFields.file { $0.file }
    Field(optional: "accepted", "losses accepted") { $0.accepts ? $0.result.changedCount : nil }
    Field(optional: "reconsidered", "losses taken back") {
      $0.accepts ? nil : $0.result.changedCount
    }
    Field("acceptedCount", "losses accepted now") { $0.result.acceptedCount }
    Field("missingCount", "blobs missing otherwise") { $0.result.missingCount }
    Field("bytesAdded", "by how many bytes the file grew") { $0.result.bytesAdded }
    ArchiveFields.head { $0.result.generation.head?.cid }
  }
}
