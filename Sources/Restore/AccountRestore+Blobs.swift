internal import ATProtocol
internal import Files
internal import IPLD
internal import XRPC

/// Sending an account's own server the blobs that it says it misses, and reading back the others.
///
/// Nothing else on it is changed, unless records are to be written again for blobs that the server
/// only believes to have.
extension AccountRestore {
  /// Sends them.
  ///
  /// - Throws: ``BackupError`` for a snapshot that is not whole; what servers throw.
  mutating func sendBlobs() async throws {
    let server = try await DestinationServer.home(
      of: did, network, (options.password, options.authFactorToken), asking: options.asksForCode,
      tell: tell)
    _ = try await describeServer(at: server.client.service)
    try await putBlobs(server)
    guard options.comparesBlobs else { return }
    let known = Set(report.unrestored.first.map(\.cid))
    var compared = try await blobs(on: server).compare(except: known)
    if try await rewrite(compared.differing.first.map(\.cid), server) {
      compared = try await blobs(on: server).compare(except: known)
    }
    report.equalBlobs = compared.equalCount
    report.unrestored += compared.differing
    try finish(.comparison, "\(compared.equalCount) equal, \(compared.differing.count) not")
  }

  /// Offers to write records again whose blobs the server believes to have and has not; returns
  /// whether that was done.
  private func rewrite(_ differing: [CID], _ server: DestinationServer) async throws -> Bool {
    let path = FileNaming.beside(archive, ".rewrite.json")
    guard !differing.isEmpty || AtomicFile.isTaken(path) else { return false }
    let restore = try await RecordRestore(archived, to: server, replaces: false)
    let finished = try await restore.finishPending(in: path)
    if finished > 0 {
      tell(.warning("\(finished) records that an interrupted run had deleted were written again"))
    }
    let plan = try await restore.plan(for: Set(differing))
    for (cid, why) in plan.hopeless { tell(.warning("\(cid) cannot be helped: \(why)")) }
    guard !plan.records.isEmpty else { return finished > 0 }
    guard options.rewritesRecords, options.agrees(.rewriting(records: plan.records.count)) else {
      tell(
        .warning(
          "the server believes to have \(differing.count) blobs that it has not, and takes them again only when no record refers to them: --rewrite-records deletes \(plan.records.count) records and writes them again, with the same keys, values and CIDs"
        ))
      return finished > 0
    }
    try await restore.rewrite(plan.records, noting: path)
    return true
  }
}
