internal import ATProtocol
internal import Archive
internal import IPLD

/// What records refer to and a server lists, set against what an archive holds: which blobs to ask for, and, afterwards, the ledger.
struct BlobReconciliation: Sendable {
  /// A blob to be asked for.
  struct Wanted: Sendable {
    /// Which.
    let cid: CID
    /// Its length, as a record says.
    let declaredSize: Int?
    /// Whether some record refers to it; if none does, the server lists it.
    let isReferenced: Bool
    /// Whether it does not go through memory, by what the record says.
    var isLarge: Bool { declaredSize ?? 0 > BlobSink.maximumInMemory }
  }

  /// The blobs that are not held, those of the newest records first, those that no record refers to last.
  private(set) var wanted: [Wanted] = []

  private let table: BlobTable
  /// How many blobs the server lists; nil if that is not known.
  let listedCount: Int?
  /// Why the server's list is not whole; nil if it is, or nobody asked for it.
  private let listFault: ListFault?
  /// Those that are held, and their lengths.
  private var held: [CID: UInt64] = [:]
  /// The blobs that no record refers to: those of the snapshot before that are held still, and those that the server lists.
  private let unreferenced: [CID]
  /// Those of them that are asked for: the server lists them, or they are damaged.
  private var unreferencedListed: Set<CID>
  /// What was missing in the snapshot before.
  private var missingBefore: [CID: BlobLedger.Missing]
  /// What came in.
  private var newCount = 0
  private var newBytes: UInt64 = 0

  /// Sets the one against the other.
  ///
  /// - Parameters:
  ///   - blobs: the blobs that records refer to.
  ///   - inCAR: the length of a block that the repository carries itself; nil if it does not.
  ///   - listing: what the server lists; nil if nobody asked. What it listed before and has not
  ///     come counts as well if nobody asked, or the list broke off.
  ///   - archive: what there is already; nil for nothing.
  ///   - base: the snapshot before this one of the same account.
  /// - Throws: `ArchiveError` and ``SnapshotError`` if the archive cannot be read.
  init(
    _ blobs: BlobTable, inCAR: (CID) -> UInt64?, listing: BlobListing?, archive: ArchiveReader?,
    base: ArchivedSnapshot?
  ) throws {
    table = blobs
    listFault = listing?.fault?.kind
    // A list of which nothing came says nothing.
    listedCount = listing.flatMap { $0.fault != nil && $0.cids.isEmpty ? nil : $0.cids.count }
    let (extras, missing) = try base?.readableLists() ?? ([], [])
    missingBefore = Dictionary(
      missing.map { ($0.cid, $0) }, uniquingKeysWith: { first, _ in first })
    var listed = listing?.cids ?? []
    if listing == nil || listFault != nil {
      listed += missing.filter { !$0.isReferenced }.map(\.cid)
    }
    var seen: Set<CID> = []
    unreferenced = (extras + listed).filter {
      !blobs.contains($0) && seen.insert($0).inserted
    }
    unreferencedListed = Set(listed.filter { !blobs.contains($0) })
    let entries = blobs.entries
    let cids = entries.map(\.cid) + unreferenced
    for cid in cids { held[cid] = inCAR(cid) }
    if let archive {
      let states = try archive.states(cids.count, isChecking: true) { cids[$0] }
      for (cid, state) in zip(cids, states) {
        if let length = state.bodyLength { held[cid] = length }
        guard state.isDamaged, held[cid] == nil else { continue }
        let isReferenced = blobs.contains(cid)
        var entry = BlobLedger.Missing(cid: cid, reason: .lost, size: nil)
        entry.isReferenced = isReferenced
        missingBefore[cid] = entry
        if !isReferenced { unreferencedListed.insert(cid) }
      }
    }
    wanted =
      Self.newestFirst(entries.filter { held[$0.cid] == nil }).map {
        Wanted(cid: $0.cid, declaredSize: $0.size, isReferenced: true)
      }
      + unreferenced.filter { held[$0] == nil && unreferencedListed.contains($0) }.map {
        Wanted(cid: $0, declaredSize: nil, isReferenced: false)
      }
  }

  /// Blobs by the record keys of the records that refer to them, which are times as a rule; those under other keys, a profile's picture for one,
  /// come first.
  private static func newestFirst(_ entries: [BlobTable.Entry]) -> [BlobTable.Entry] {
    func key(_ entry: BlobTable.Entry) -> Substring {
      let key = entry.firstRecord.drop { $0 != "/" }.dropFirst()
      do {
        _ = try TID(String(key))
        return key
      } catch {
        return "~"
      }
    }
    return entries.enumerated().map { (key($0.element), $0.offset, $0.element) }
      .sorted { ($0.0, $0.1) > ($1.0, $1.1) }.map(\.2)
  }

  /// The blobs that are wanted and have not come.
  var outstanding: [Wanted] { wanted.filter { held[$0.cid] == nil } }

  /// Notes that a blob has come into the archive.
  mutating func received(_ cid: CID, length: UInt64) {
    held[cid] = length
    newCount += 1
    newBytes += length
  }

  /// What the manifest says about the blobs.
  struct Ledger {
    var counts: Snapshot.BlobCounts
    var extras: [CID]
    var missing: [BlobLedger.Missing]
  }

  /// The ledger, when everything has been asked for.
  ///
  /// - Parameters:
  ///   - failures: why blobs did not come.
  ///   - moment: when they were asked for.
  func ledger(_ failures: [CID: BlobFailure], at moment: String) -> Ledger {
    var counts = Snapshot.BlobCounts()
    var missing: [BlobLedger.Missing] = []
    func miss(_ cid: CID, size: Int?, isReferenced: Bool) {
      let earlier = missingBefore[cid]
      var entry =
        earlier ?? BlobLedger.Missing(cid: cid, reason: .notTried, size: size)
      entry.size = size ?? entry.size
      entry.isReferenced = isReferenced
      if let failure = failures[cid] {
        entry.reason = failure.reason
        entry.status = failure.status
        entry.firstTried = entry.firstTried ?? moment
        entry.lastTried = moment
      }
      missing.append(entry)
    }
    for entry in table.entries {
      counts.referenced += 1
      if let length = held[entry.cid] {
        counts.held += 1
        counts.heldBytes += length
      } else {
        miss(entry.cid, size: entry.size, isReferenced: true)
      }
    }
    var extras: [CID] = []
    for cid in unreferenced {
      if let length = held[cid] {
        extras.append(cid)
        counts.extras += 1
        counts.extrasBytes += length
      } else if unreferencedListed.contains(cid) {
        counts.listedMissing += 1
        miss(cid, size: nil, isReferenced: false)
      }
    }
    counts.listed = listedCount
    counts.listFault = listFault
    counts.new = newCount
    counts.newBytes = newBytes
    return Ledger(counts: counts, extras: extras, missing: missing)
  }
}
