internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Copying
internal import IPLD
internal import Reports
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// Accepting losses, and taking that back: what `carpack missing` changes if it is asked to.
extension MissingCommand {
  /// The change to make; nil if there is none.
  var acceptance: LossAcceptance? {
    get throws {
      let words = accept + reconsider
      guard !words.isEmpty else { return nil }
      let cids = try words.filter { $0 != "all" }.map { word in
        do throws(CIDError) {
          return try CID(word)
        } catch {
          throw ValidationError("\"\(word)\" is neither a CID nor \"all\"")
        }
      }
      return LossAcceptance(
        of: words.contains("all") ? nil : cids,
        accept.isEmpty ? nil : BlobLedger.Acceptance(date: Host.now, reason: reason))
    }
  }

  /// Makes the change in the archive, and reports the result.
  func apply(_ acceptance: LossAcceptance) throws {
    let file = argument.paths[0]
    try Elsewhere.refuse(file, "acceptances are noted in a file")
    try CARInput.refuse(file)
    let report = try acceptance.apply(to: FileStorage.openArchive(FilePath(file)), name: file) {
      history in
      try history.account(snapshot.accountOption.account)
    }
    if json {
      Self.acceptanceReport.print((file, accepts: !accept.isEmpty, report))
    } else {
      say(report, of: file)
    }
    try end(with: report.lost, of: file)
  }

  private func say(_ report: LossAcceptance.Report, of file: String) {
    let done = Quantity.count(report.changedCount, "loss", "losses")
    let now = Quantity.count(report.acceptedCount, "loss is", "losses are")
    common.say(
      "\(file): \(done) \(accept.isEmpty ? "to be asked for again" : "accepted"), \(Quantity.bytes(report.bytesAdded)) added; \(now) accepted now, \(Quantity.count(report.missing.count, "blob")) missing otherwise"
    )
    guard accept.contains("all") else { return }
    for (reason, count) in report.missing.byReason {
      common.say(
        "\(file): \(Quantity.count(count, "blob")) not accepted, because the cause may be temporary: \(reason.sentence)"
      )
    }
  }

  static let acceptanceReport = Report<
    (file: String, accepts: Bool, result: LossAcceptance.Report)
  >(
    "acceptance", "`carpack missing --accept` and `--reconsider`."
  ) {
    ArchiveFields.file { $0.file }
    Field(optional: "accepted", "losses accepted") { $0.accepts ? $0.result.changedCount : nil }
    Field(optional: "reconsidered", "losses taken back") {
      $0.accepts ? nil : $0.result.changedCount
    }
    Field("acceptedCount", "losses accepted now") { $0.result.acceptedCount }
    Field("missingCount", "blobs missing otherwise") { $0.result.missing.count }
    Field("bytesAdded", "by how many bytes the file grew") { $0.result.bytesAdded }
    ArchiveFields.head { $0.result.generation.head?.cid }
    ArchiveFields.lost { $0.result.lost }
  }
}
