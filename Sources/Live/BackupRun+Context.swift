internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Snapshots

/// What an app view shows of the people and posts that the account's records point to.
///
/// 1. It comes last and is not part of the backup: a failure is a warning, and never changes the
///    backup's result.
/// 2. What the archive has is not requested again, whichever of its accounts brought it, except for
///    names, after 30 days.
extension BackupRun {
  /// How many failures are reported.
  private static let maximumTold = 3

  /// Requests what is new.
  ///
  /// - Parameter records: visits the blocks of the repository.
  /// - Throws: `CancellationError`; ``BackupError`` if there is no room for what arrives.
  func fetchContext(
    _ options: ContextOptions, _ records: @escaping BlockVisitor
  ) async throws -> (ReceivedContext, ContextOutcome) {
    observer(.progress(BackupProgress(.context)))
    let (did, folder, base, archive) = (identity.did, target.folder, base, target.reader)
    var outcome = ContextOutcome()
    let (subjects, leftOutCount, known, failure) = try await onOwnQueue {
      var subjects = ContextSubjects(
        of: did, limit: options.items, takesPosts: options.kind != .names)
      var failure: String?
      // The subjects come from the readable part of the repository; damage is reported elsewhere.
      do { try records { subjects.read($0) } } catch { failure = "\(error)" }
      let wanted = subjects.newestFirst()
      var received = try ReceivedContext(of: did, in: folder, after: base)
      if let archive {
        try unlessDamaged { try received.takeOver(wanted, of: did, in: archive) }
      }
      return (wanted, subjects.leftOutCount, received, failure)
    }
    outcome.leftOut = leftOutCount
    if let failure { outcome.fail("not all records can be read: \(failure)") }
    var download = ContextDownload(
      network, options, known, now: self.options.now(), observer: observer)
    download.outcome = outcome
    download = try await download.fetched(subjects)
    tell(download.outcome, options)
    let (fetched, leftOut) = (download.received, download.outcome.leftOut)
    let received = try await onOwnQueue {
      var received = fetched
      received.leftOutCount = leftOut
      try received.finish()
      return received
    }
    return (received, download.outcome)
  }

  private func tell(_ outcome: ContextOutcome, _ options: ContextOptions) {
    for text in outcome.failures.prefix(Self.maximumTold) {
      warn("the context is incomplete: \(text)")
    }
    if outcome.leftOut > 0 {
      warn(
        "people and posts left out of the context (\(outcome.leftOut)), which is limited to \(options.items) items and \(options.bytes / 1_000_000) MB"
      )
    }
    if outcome.unproven + outcome.proofsLeftOut > 0 {
      warn("posts of the context without a proof: \(outcome.unproven + outcome.proofsLeftOut)")
    }
    if outcome.thumbnailsMissing > 0 {
      warn("thumbnails of the context that could not be fetched: \(outcome.thumbnailsMissing)")
    }
    if outcome.thumbnailsLeftOut > 0 {
      warn(
        "thumbnails left out of the context (\(outcome.thumbnailsLeftOut)), which is limited to \(options.bytes / 1_000_000) MB"
      )
    }
  }
}

/// Visits the blocks of a repository, and perhaps some that it had earlier.
typealias BlockVisitor = @Sendable (_ visit: (Span<UInt8>) throws -> Void) throws -> Void

extension ReceivedContext {
  /// Takes what other accounts in the archive have of some subjects.
  ///
  /// - Throws: ``BackupError`` if there is no room; `ArchiveError` if the archive cannot be read.
  fileprivate mutating func takeOver(
    _ subjects: [ContextItem.Subject], of did: DID, in archive: ArchiveReader
  ) throws {
    var wanted = Set(subjects.filter { self[$0] == nil })
    guard !wanted.isEmpty else { return }
    for entry in try SnapshotHistory(of: archive).newestOfAccounts where entry.did != did {
      // What is damaged is requested.
      try unlessDamaged {
        try ArchivedSnapshot(entry.cid, in: archive).forEachContextItem { item in
          if !item.isAbsent, wanted.remove(item.subject) != nil { try take(item) }
        }
      }
    }
  }
}
