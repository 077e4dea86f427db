internal import Archive
internal import IPLD

/// A walk through the manifests of an archive, each of which names the one before it.
///
/// 1. No manifest is visited twice, and none is listed that only says again what a listed one says.
/// 2. ``entries`` has the newest first, as far as one leads to the other.
struct ManifestWalk {
  private let reader: ArchiveReader
  /// How many snapshots are listed.
  private let limit: Int
  /// The snapshots that were met.
  private(set) var entries: [SnapshotHistory.Entry] = []
  /// Where manifests are lost.
  private(set) var breaks: [SnapshotHistory.Break] = []
  /// The manifests that were visited, and whether the chain from there leads to its beginning.
  private var seen: [CID: Bool] = [:]
  private var contents: ManifestContents
  /// How many entries are in ``contents``.
  private var knownCount = 0

  init(_ reader: ArchiveReader, _ limit: Int) {
    (self.reader, self.limit) = (reader, limit)
    contents = ManifestContents(reader)
  }

  /// Walks the chain of manifests from the newest, and where it is broken continues with the next
  /// that a footer names.
  ///
  /// - Parameter heads: The newest manifests by the footers, the newest first, and where each
  ///   footer lies.
  /// - Returns: Where the footer lies from which the chain leads to its beginning; nil if none
  ///   does. What older footers name and that chain passes by has been forgotten on purpose.
  mutating func follow(_ heads: [(cid: CID, offset: UInt64)]) throws -> UInt64? {
    for head in heads where seen[head.cid] == nil {
      guard try walk(from: head.cid, isVouched: true) == false else { return head.offset }
    }
    return nil
  }

  /// Adds manifests that were found in the file, and no footer leads to.
  ///
  /// - Parameters:
  ///   - found: The manifests, in the order of the file. Of those that say the same the last
  ///     stands for all.
  ///   - hasSoundChain: Whether what leads on from them may have been forgotten on purpose.
  /// - Returns: Their entries.
  mutating func find(_ found: [Generation.Head], _ hasSoundChain: Bool) throws
    -> [SnapshotHistory.Entry]
  {
    let first = entries.count
    for head in found.reversed() where seen[head.cid] == nil {
      let isSound = try walk(from: head.cid, isVouched: false, isAlone: hasSoundChain)
      if isSound == nil { break }
    }
    return Array(entries[first...].reversed())
  }

  /// Walks back from a manifest.
  ///
  /// One that was made again stands for the one it was made of, and forgets what came before that,
  /// if its own chain leads to its beginning.
  ///
  /// - Returns: Whether the chain leads to its beginning; nil if there are too many.
  private mutating func walk(from head: CID, isVouched: Bool, isAlone: Bool = false) throws
    -> Bool?
  {
    let (first, breakCount) = (entries.count, breaks.count)
    for entry in entries[knownCount...] {
      contents.note(entry.cid, entry.commit, isSound: seen[entry.cid] ?? false)
    }
    knownCount = first
    var (chain, isAgain): ([CID], Bool) = ([], false)
    var next: CID? = head
    while let cid = next, !isAgain, seen[cid] == nil, chain.isEmpty || !isAlone {
      guard entries.count < limit else {
        if breaks.last?.reason != .tooMany { note(.tooMany) }
        return nil
      }
      seen[cid] = false
      chain.append(cid)
      next = nil
      do {
        let snapshot = try ArchivedSnapshot.manifest(cid, in: reader)
        next = snapshot.previous
        if first > 0, let isSound = try contents.same(as: snapshot) {
          isAgain = isSound
          continue
        }
        var entry = SnapshotHistory.Entry(cid, snapshot)
        (entry.isCommitted, entry.isVouched) = (isVouched, entry.isVouched && isVouched)
        entries.append(entry)
        if entries.count % 128 == 0 { reader.releasePages() }
      } catch let error as ArchiveError {
        note(.damagedManifest(cid, error))
      } catch let error as SnapshotError {
        // What was found may only have the shape of a manifest.
        if isVouched || chain.count > 1 { note(.unusableManifest(cid, error)) }
      }
    }
    let isSound = breaks.count == breakCount && (isAgain || next.map { seen[$0] ?? false } ?? true)
    if isSound { for cid in chain { seen[cid] = true } }
    return isSound
  }

  private mutating func note(_ reason: SnapshotHistory.Break.Reason) {
    breaks.append(SnapshotHistory.Break(reason: reason, after: entries.last?.cid))
  }
}

/// Tells whether a manifest says something that no other says: one that was made again differs only
/// in the manifest before it and in where its blocks lie.
struct ManifestContents {
  private let reader: ArchiveReader
  /// The manifests of each commit whose contents have not been read.
  private var unread: [CID: [(manifest: CID, isSound: Bool)]] = [:]
  /// Whether the chain of a manifest with this content leads to its beginning.
  private var contents: [CID: Bool] = [:]

  init(_ reader: ArchiveReader, _ entries: [SnapshotHistory.Entry] = []) {
    self.reader = reader
    for entry in entries { note(entry.cid, entry.commit) }
  }

  mutating func note(_ manifest: CID, _ commit: CID, isSound: Bool = false) {
    unread[commit, default: []].append((manifest, isSound))
  }

  /// Whether the chain of a manifest that says the same leads to its beginning; nil if none says
  /// the same.
  mutating func same(as snapshot: Snapshot) throws -> Bool? {
    for (other, isSound) in unread.removeValue(forKey: snapshot.commit) ?? [] {
      // What cannot be read says nothing.
      guard let other = try? ArchivedSnapshot.manifest(other, in: reader) else { continue }
      let content = try other.content()
      contents[content] = contents[content] ?? false || isSound
    }
    return contents[try snapshot.content()]
  }
}
