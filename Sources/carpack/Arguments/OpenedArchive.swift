internal import ATProtocol
internal import Archive
internal import Extraction
internal import Files
internal import Reports
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// An archive that has been opened, and where it lies.
///
/// It remembers what had to be done to read it, and prints that once, when asked for its
/// ``status``.
final class OpenedArchive {
  private(set) var reader: ArchiveReader
  private let input: InputFile
  private var knownHistory: SnapshotHistory?
  private var isSalvaged = false

  init(reader: ArchiveReader, input: InputFile) { (self.reader, self.input) = (reader, input) }

  /// The note that blobs were not checked, because that would fetch them.
  static let byIndex =
    "the blobs are listed from the archive's index, with the sizes that records declare; \"carpack verify\" reads them"

  /// What to do about a write that was not finished: a file that was cut off looks the same.
  static let completion =
    "the next backup completes the write, or \"carpack repair\" keeps its intact part; if the file may have been cut off, compare it with another copy first"

  /// What to do about a file in which other archives follow.
  static let completionOfAll =
    "\"carpack repair -o NEW\" makes one archive of all archives in the file"

  /// Its name in messages.
  var name: String { input.name }

  /// Its name as a word of a command line.
  var word: String { input.word }

  /// A path that leads to its bytes; nil for a remote archive.
  var path: FilePath? { input.isFar ? nil : input.path }

  /// Uses it, and makes sure that everything that was read was fetched: otherwise nothing can be
  /// concluded from it.
  func checkingFetched<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      let value = try body()
      try reader.checkFetched()
      return value
    } catch let status as ExitStatus where Interruption.received != nil {
      // It was stopped, and has reported what is there.
      throw status
    } catch {
      try reader.checkFetched()
      throw error
    }
  }

  /// All snapshots.
  var history: SnapshotHistory {
    get throws {
      if let knownHistory { return knownHistory }
      let history = try SnapshotHistory(of: reader)
      (knownHistory, reader) = (history, history.reader)
      return history
    }
  }

  /// The selected snapshots, at most one of each account; without a selection, the newest of
  /// each.
  ///
  /// For an archive that has lost all manifests, what is left.
  func snapshots(_ options: SnapshotOptions) throws -> [ArchivedSnapshot] {
    try snapshots(options.selector, options.accountOption.account)
  }

  /// The history of an archive that has one, for choosing from it.
  func usableHistory() throws -> SnapshotHistory {
    let history = try self.history
    try history.refuseUnusable()
    return history
  }

  /// A snapshot of the history.
  func snapshot(_ entry: SnapshotHistory.Entry) throws -> ArchivedSnapshot {
    try ArchivedSnapshot(entry.cid, in: reader)
  }

  private func snapshots(_ selector: SnapshotSelector?, _ account: String?) throws
    -> [ArchivedSnapshot]
  {
    let found = try history.snapshots(selector, of: account)
    if found.areSalvaged { isSalvaged = true }
    return found.snapshots
  }

  /// The one selected snapshot, in which single items are looked up: items that name
  /// an account narrow it.
  ///
  /// - Parameters:
  ///   - options: what the user asked for.
  ///   - selectors: the items, of which AT URIs name the account.
  func snapshot(_ options: SnapshotOptions, naming selectors: [String] = []) throws
    -> ArchivedSnapshot
  {
    let history = try self.history
    var account =
      try history.entries.isEmpty
      ? nil
      : history.account(options.accountOption.account)
    for selector in selectors {
      guard let authority = try Selector(selector).account else { continue }
      guard let owner = try history.owner(authority.text) else {
        throw BackupError.notFound(selector)
      }
      guard account == nil || account == owner else {
        throw Failure(
          "\(selector) does not belong to the account \(history.name(of: account ?? owner))",
          hint: "select items of one account at a time", status: .usage)
      }
      account = owner
    }
    let found = try snapshots(
      options.selector,
      history.entries.isEmpty ? options.accountOption.account : account?.text)
    guard found.count == 1 else {
      throw SelectionError.severalAccounts(found.map { history.name(of: $0.snapshot.did) })
    }
    return found[0]
  }

  /// Prints what could not be read; returns 11 if some of it is damaged, 10 if some is missing.
  func say(_ gaps: [RecordSearch.Gap]) -> ExitStatus {
    gaps.reduce(.success) { status, gap in
      Console.say(gap.isDamage ? .damaged : .incomplete, "\(name): \(gap.what)")
      return .worst(status, gap.isDamage ? .damaged : .incomplete)
    }
  }

  /// The exit status of what only reads: 11 if opening the file took a repair in memory or
  /// something is lost, 10 if it ends in an unfinished write, 0 otherwise; prints what was found.
  var status: ExitStatus {
    let status = statusOfContent
    guard let path, let loss, WrittenSize.isWhole(path) else { return .worst(status, lossStatus) }
    Console.say(
      .warning,
      "\(name) is an older copy of what carpack last wrote to it, which was \(loss.byteCount) bytes longer (\"carpack verify \(word)\" says more)"
    )
    return status
  }

  /// The exit status of what judges the file: as ``status``, and 10 if it is older than it was.
  var verdict: ExitStatus { .worst(statusOfContent, lossStatus) }

  private var statusOfContent: ExitStatus {
    var status = ExitStatus.success
    for broken in knownHistory?.breaks ?? [] where broken.isOfManifest && !isSalvaged {
      Console.say(.damaged, "\(name): \(broken)")
      status = .damaged
    }
    if isSalvaged {
      Console.say(
        .damaged, "\(name): its manifest is lost; this is what can be read without it"
      )
      status = .damaged
    }
    return .worst(status, repairStatus, remainsStatus, furtherStatus ?? tailStatus)
  }

  private var loss: WrittenSize.Loss? { path.flatMap { WrittenSize.loss(of: $0) } }

  /// 10 if the file is an older copy of what was written to it, 11 if its end was cut off, 0
  /// otherwise; prints what is lost and what to do.
  var lossStatus: ExitStatus {
    guard let path, let loss else { return .success }
    return Self.say(loss, of: path, named: name, word)
  }

  /// Prints what a file has lost and what to do; returns 10 if it is an older copy of what was
  /// written to it, 11 if its end was cut off.
  static func say(
    _ loss: WrittenSize.Loss, of path: FilePath, named name: String, _ word: String
  ) -> ExitStatus {
    let isWhole = WrittenSize.isWhole(path)
    let sentence = isWhole ? loss.ofOlderCopy(named: name) : loss.ofEnd(named: name)
    Console.say(isWhole ? .incomplete : .damaged, "\(sentence); \(adviceOnLoss(word))")
    return isWhole ? .incomplete : .damaged
  }

  /// What to do about an end that was cut off.
  static func adviceOnLoss(_ word: String) -> String {
    "put back the newer file, or give up these bytes, and the snapshots in them, with \"carpack repair \(word)\""
  }

  /// 11 if another archive follows, nil otherwise; prints where, and what to do.
  private var furtherStatus: ExitStatus? {
    do {
      try reader.refuseFurtherArchives()
      return nil
    } catch {
      Console.say(
        .damaged,
        "\(name): \(error); only the first is read: \(Self.completionOfAll)"
      )
      return .damaged
    }
  }

  /// 10 if something follows what is committed, 11 if it was committed once; prints what it is.
  private var tailStatus: ExitStatus {
    guard let recovery = reader.recovery, recovery.interruptedTail > 0,
      reader.generation.number > 0
    else { return .success }
    let size = Quantity.bytes(recovery.interruptedTail)
    if recovery.isBeingWritten {
      Console.say(
        .note, "\(name) is being written to; only what is already committed is read")
      return .success
    }
    let found = (knownHistory?.entries ?? []).count { !$0.isVouched }
    let hint =
      found > 0
      ? "; \(Quantity.count(found, "snapshot")) in it can be chosen with --at"
      : ""
    if let damage = recovery.damagedEnd {
      Console.say(
        .damaged,
        "\(name): \(damage); nothing of these \(size) counts\(hint), "
          + "and all of it stays: \"carpack repair --from COPY\" writes again what a copy has"
      )
      return .damaged
    }
    guard recovery.isDamaged else {
      Console.say(
        .unfinished,
        "\(name) ends in \(size) of a write that was not finished\(hint); \(Self.completion)")
      return .incomplete
    }
    Console.say(
      .damaged,
      "\(name): bytes were inserted or removed before its last \(size)\(hint); \"carpack repair\" fixes that"
    )
    return .damaged
  }

  /// 11 if something was read of a frame that does not hold, 0 otherwise; prints what that means.
  private var remainsStatus: ExitStatus {
    guard reader.hasReadRemains else { return .success }
    Console.say(
      .damaged,
      "\(name) is damaged; what was read of the damaged parts matches its CIDs. \"carpack verify\" says what is lost"
    )
    return .damaged
  }

  private var repairStatus: ExitStatus {
    guard let recovery = reader.recovery, let rebuild = recovery.rebuild else { return .success }
    let what =
      switch rebuild {
      case .noFooter: "its end is lost: no generation was committed"
      case .damagedIndex: "its index is damaged"
      }
    Console.say(
      .damaged,
      "\(name): \(what); it was read from the data itself. \"carpack verify\" says what is lost"
    )
    return .damaged
  }
}
