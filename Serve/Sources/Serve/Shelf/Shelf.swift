import ATProtocol
import Archive
import Files
import IPLD
import LibC
import Remote
import Snapshots
import Synchronization
import Terminal

/// The archives that are served, and the accounts in them.
///
/// Files are examined again every second: one that grew is opened again, so that a new snapshot
/// appears while a backup is running; if one cannot be read, its earlier state is still served.
final class Shelf: Sendable {
  private struct State {
    var archives: [ShelvedArchive] = []
    var accounts: [DID: ServedAccount] = [:]
    /// Files that could not be read, as they were then.
    var unreadable: [String: ShelvedArchive.Identity?] = [:]
    /// Messages from the last scan of the folders.
    var said: Set<String> = []
  }

  private let paths: [String]
  private let elsewhere: FarArchives?
  private let selector: SnapshotSelector
  private let limits: ArchiveLimits
  private let say: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// A shelf with nothing on it yet.
  ///
  /// - Parameters:
  ///   - paths: archives, and folders to look for archives in, here and elsewhere.
  ///   - elsewhere: what lists and opens those elsewhere; nil if there are none.
  ///   - selector: which snapshot of each account is served.
  ///   - limits: how much an archive may hold.
  ///   - say: called with archives that cannot be read.
  init(
    _ paths: [String], _ elsewhere: FarArchives?, _ selector: SnapshotSelector,
    _ limits: ArchiveLimits,
    say: @escaping @Sendable (String) -> Void
  ) {
    (self.paths, self.elsewhere, self.selector) = (paths, elsewhere, selector)
    (self.limits, self.say) = (limits, say)
  }

  /// The archives, in the order of their paths.
  var archives: [ShelvedArchive] { state.withLock { $0.archives } }

  /// Whether one of the archives is sealed.
  var holdsSealed: Bool { state.withLock { $0.archives.contains(where: \.isSealed) } }

  /// The accounts, in the order of their DIDs.
  var accounts: [ServedAccount] {
    state.withLock { $0.accounts.values.sorted { $0.did.text < $1.did.text } }
  }

  /// The account that goes by a DID or by a handle; nil if there is none.
  func account(_ identifier: String) -> ServedAccount? {
    if identifier.hasPrefix("did:") {
      guard let did = try? DID(identifier) else { return nil }
      return state.withLock { $0.accounts[did] }
    }
    let handle = identifier.lowercased()
    return state.withLock { state in
      state.accounts.values.filter { $0.entry.handle?.text == handle }.min {
        $0.did.text < $1.did.text
      }
    }
  }

  /// The archive with this address on the page.
  func archive(at address: String) -> ShelvedArchive? {
    archives.first { $0.address == address }
  }

  /// Looks at the files again.
  ///
  /// - Returns: whether anything changed.
  @discardableResult
  func refresh() -> Bool {
    let before = archives
    let known = Dictionary(before.map { ($0.path, $0) }) { first, _ in first }
    var found: [ShelvedArchive] = []
    var unreadable = state.withLock { $0.unreadable }
    for file in files() {
      let (path, identity) = (file.path, file.identity)
      let earlier = known[path]
      if let earlier, earlier.isReadable,
        earlier.identity == identity || identity == nil && !isGone(path)
      {
        found.append(earlier)
        continue
      }
      if let said = unreadable[path], said == identity, !file.isNew {
        if let earlier { found.append(earlier) }
        continue
      }
      do {
        guard let identity else {
          throw ArchiveError(.system(operation: "open \(path)", code: ENOENT))
        }
        let far = file.isFar ? try elsewhere?.open(path) : nil
        found.append(
          try ShelvedArchive(path: path, identity, far: far, selector, limits, after: earlier))
        unreadable[path] = nil
      } catch {
        say("\(RemoteArchive.shown(path)): \(Failure(error).message)")
        unreadable[path] = identity
        if let earlier, identity != nil { found.append(earlier) }
      }
    }
    var seen: Set<String> = []
    found = found.filter { seen.insert($0.path).inserted }
    let isSame = found.count == before.count && zip(found, before).allSatisfy { $0 === $1 }
    let accounts = isSame ? nil : Self.accounts(in: found)
    state.withLock { state in
      state.unreadable = unreadable
      guard let accounts else { return }
      (state.archives, state.accounts) = (found, accounts)
    }
    return !isSame
  }

  private func isGone(_ path: String) -> Bool { unsafe access(path, F_OK) != 0 }

  /// Where an archive lies, and its present identity; whether it lies elsewhere, and was asked for
  /// just now.
  private typealias File = (
    path: String, identity: ShelvedArchive.Identity?, isFar: Bool, isNew: Bool
  )

  private func files() -> [File] {
    var faults: Set<String> = []
    func near(_ path: String) -> File { (path, ShelvedArchive.Identity(path: path), false, false) }
    let files = paths.flatMap { path -> [File] in
      if RemoteArchive.isAddress(path), let elsewhere {
        do {
          let (found, isNew) = try elsewhere.list(path)
          return found.map { ($0.address, .init(version: $0.version), true, isNew) }
        } catch {
          faults.insert("\(RemoteArchive.shown(path)): \(error)")
          return archives.filter { $0.far != nil && $0.path.hasPrefix(path) }
            .map { ($0.path, $0.identity, true, false) }
        }
      }
      guard BlobFolder.isFolder(path) else { return [near(path)] }
      let folder = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
      do {
        return try ArchiveFolder.archives(in: folder) { faults.insert("\($0)") }.map(near)
      } catch {
        faults.insert("\(path): \(error)")
        return archives.map(\.path).filter { $0.hasPrefix("\(folder)/") }.map(near)
      }
    }
    // A lasting problem is reported once.
    let before = state.withLock { state in
      let before = state.said
      state.said = faults
      return before
    }
    for fault in faults.subtracting(before).sorted() { say(fault) }
    return files
  }

  /// Each account, from the archive with its newest snapshot.
  private static func accounts(in archives: [ShelvedArchive]) -> [DID: ServedAccount] {
    var accounts: [DID: ServedAccount] = [:]
    for archive in archives {
      for entry in archive.served {
        let account = ServedAccount(archive: archive, entry: entry)
        if let other = accounts[entry.did], !account.isNewer(than: other) { continue }
        accounts[entry.did] = account
      }
    }
    return accounts
  }
}

/// An account, and the snapshot of it that is served.
struct ServedAccount: Sendable {
  let archive: ShelvedArchive
  let entry: SnapshotHistory.Entry

  var did: DID { entry.did }
  /// The revision as clients read it.
  var rev: String { entry.rev?.text ?? "" }
  /// The snapshot.
  ///
  /// - Throws: `SnapshotError` and `ArchiveError` for a manifest that is damaged.
  func snapshot() throws -> ArchivedSnapshot { try ArchivedSnapshot(entry.cid, in: archive.reader) }

  /// Whether its revision is later, or, if the revisions are equal, it was made later.
  func isNewer(than other: ServedAccount) -> Bool {
    (rev, entry.createdAt) > (other.rev, other.entry.createdAt)
  }
}
