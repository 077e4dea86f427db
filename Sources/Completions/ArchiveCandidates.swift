internal import ATProtocol
internal import Archive
internal import IPLD
internal import LibC
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// Candidates from the archive on the line: its snapshots, its accounts, the paths of its records.
///
/// What cannot be read is not offered.
struct ArchiveCandidates {
  typealias Candidate = CompletionAnswer.Candidate

  /// How many snapshots are offered; a longer menu does not help.
  private static let maximumSnapshots = 200

  private let reader: ArchiveReader
  private let history: SnapshotHistory
  /// The snapshots of the account that `--account` names, or all.
  private let entries: [SnapshotHistory.Entry]
  private let options: [String: String]

  /// Opens the archive; nil if it is not one.
  init?(_ path: String, _ options: [String: String]) {
    let path = Self.expanded(path)
    // Opening a pipe would wait for its writer.
    guard Self.isPlainFile(path) else { return nil }
    do {
      let reader = try ArchiveReader(path: FilePath(path), limits: ArchiveLimits())
      let history = try SnapshotHistory(of: reader)
      let account = try options["--account"].map { name in try history.account(name) }
      self.reader = history.reader
      self.history = history
      self.options = options
      entries = history.entries.filter { account == nil || $0.did == account }
    } catch {
      return nil
    }
  }

  /// Numbers and times of the snapshots, the newest first.
  func snapshots(_ typed: String) -> [Candidate] {
    let newest = entries.suffix(Self.maximumSnapshots).reversed()
    if typed.hasPrefix("-") {
      return newest.map {
        Candidate(text: "\($0.number - history.entries.count - 1)", description: Self.summary($0))
      }
    }
    let numbers = newest.map { Candidate(text: "\($0.number)", description: Self.summary($0)) }
    let times = newest.map { Candidate(text: $0.createdAt, description: "number \($0.number)") }
    return numbers + [Candidate(text: "latest", description: "the newest")] + times
  }

  private static func summary(_ entry: SnapshotHistory.Entry) -> String {
    "\(entry.createdAt), \(entry.name), \(Quantity.count(entry.counts.records, "record"))"
  }

  /// The handle and the DID of each account.
  var accounts: [Candidate] {
    var seen: Set<String> = []
    var handles: [Candidate] = []
    var dids: [Candidate] = []
    for entry in history.entries.reversed() {
      if let handle = entry.handle?.text, seen.insert(handle).inserted {
        handles.append(Candidate(text: handle, description: entry.did.text))
      }
      if seen.insert(entry.did.text).inserted {
        dids.append(Candidate(text: entry.did.text, description: entry.handle?.text ?? ""))
      }
    }
    return handles + dids
  }

  /// The collections.
  func collections(_ typed: String) -> [Candidate] {
    selectors(typed.prefix { $0 != "/" }.description).map {
      Candidate(text: String($0.text.dropLast()))
    }
  }

  /// Collections, then the paths of records in one.
  func selectors(_ typed: String) -> [Candidate] {
    var found: Set<String> = []
    do {
      let selector = try options["--at"].map { text in try SnapshotSelector(text) } ?? .latest
      let account = try options["--account"].map { name in try history.account(name) }
      for entry in try history.select(selector, of: account) {
        var keys = try TreeKeys(ArchivedSnapshot(entry.cid, in: reader))
        found.formUnion(try keys.next(after: typed))
      }
    } catch {
      // What was found before the damage is offered.
    }
    return found.sorted().map { Candidate(text: $0) }
  }

  private static func expanded(_ path: String) -> String {
    guard path.hasPrefix("~/"), let home = Host.environment("HOME") else { return path }
    return home.value + path.dropFirst()
  }

  private static func isPlainFile(_ path: String) -> Bool {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return false }
    return status.st_mode & S_IFMT == S_IFREG
  }
}
