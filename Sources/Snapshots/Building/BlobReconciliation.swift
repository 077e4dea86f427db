package import ATProtocol
package import Archive
package import IPLD

/// Compares what records refer to and a server lists with what an archive holds: which blobs to
/// request, and, afterwards, the ledger.
///
/// This is the only thing that makes a ledger, whether blobs come from a server or from files.
///
/// There may be a million blobs, so each has a position, and what is known of it stands in arrays:
/// first come those that records refer to, in the order of the table, then all others.
package struct BlobReconciliation: Sendable {
  /// A blob to be requested.
  package struct Wanted: Sendable {
    /// The blob.
    package let cid: CID
    /// Its length, as a record says.
    package let declaredSize: Int?
    /// Whether some record refers to it; if none does, the server lists it.
    package let isReferenced: Bool
    /// Its position in the reconciliation.
    package var position = 0
    /// Whether it does not go through memory, by what the record says.
    package var isLarge: Bool { declaredSize ?? 0 > BlobLedger.largeBlob }
  }

  private let table: BlobTable
  /// The blobs after those of the table.
  private var others: IndexedCIDs
  /// Why each of these is expected.
  private var needs: [Need]
  /// The length of each blob; ``absent`` for those that are not held.
  private var lengths: [UInt64]
  /// What was missing in the snapshot before.
  private let before: BlobLedger.MissingList
  /// Where in ``before`` each blob is, and 1 more; 0 for those that are not, ``lost`` for those
  /// that are damaged, ``mismatched`` for those for which something else was given.
  private var places: [UInt32]
  /// The blobs to request, those of the newest records first, those that no record refers to last.
  private var wantedPositions: [UInt32] = []
  /// Which blobs are requested; nil without a server.
  private let schedule: RetrySchedule?
  /// What is known of blobs that have no position.
  private var known: BlobLedger

  private static let absent = UInt64.max
  private static let lost = UInt32.max
  private static let mismatched = UInt32.max - 1

  /// Why a blob after those of the table is expected.
  private enum Need {
    /// It is not expected.
    case none
    /// The server lists it, or it is damaged.
    case listed
    /// Some record refers to it.
    case referenced
  }

  /// Compares the two.
  ///
  /// - Parameters:
  ///   - blobs: the blobs that records refer to.
  ///   - inCAR: the length of a block that the repository carries itself; nil if it does not.
  ///   - listing: what the server lists; nil if it was not asked. If it was not, or the list broke
  ///     off, the blobs that it listed before and that are still missing are asked for as well.
  ///   - archive: what there is already; nil for nothing.
  ///   - base: the snapshot before this one of the same account.
  ///   - schedule: which of those that were asked for in vain are asked for again; nil without a
  ///     server.
  ///   - newOnes: of a remote archive, the blobs to which records refer that it does not have; nil
  ///     if that is not known. Others were looked up when their records came: the base holds those
  ///     that it does not say are missing, if the index has them.
  /// - Throws: `ArchiveError` and ``SnapshotError`` if the archive cannot be read.
  package init(
    _ blobs: BlobTable, inCAR: (CID) -> UInt64?, listing: BlobListing?, archive: ArchiveReader?,
    base: ArchivedSnapshot?, schedule: RetrySchedule? = .always,
    ofNewRecords newOnes: Set<CID>? = nil
  ) throws {
    let lists = try base?.readableLists()
    var others = IndexedCIDs()
    for cid in lists?.extras ?? [] where !blobs.contains(cid) { others.insert(cid) }
    let extrasEnd = blobs.entries.count + others.list.count
    var needs = [Need](repeating: .none, count: others.list.count)
    func list(_ cid: CID) {
      guard !blobs.contains(cid) else { return }
      if others.insert(cid) { needs.append(.listed) }
      if let place = others.place(of: cid) { needs[place] = .listed }
    }
    for cid in listing?.list ?? [] { list(cid) }
    if listing == nil || listing?.fault != nil {
      for entry in lists?.missing ?? [] where !entry.isReferenced { list(entry.cid) }
    }
    var known = BlobLedger()
    known.counts.listFault = base?.snapshot.blobs.listFault
    self.init(
      blobs, others: others, needs, before: lists?.missing ?? [], known, listing: listing,
      schedule: schedule)
    for position in 0..<count {
      if let length = inCAR(cid(at: position)) { lengths[position] = length }
    }
    if let archive {
      // For a remote archive, no blob is fetched to be examined.
      @Sendable func declared(_ position: Int) -> UInt64? {
        guard position < blobs.entries.count else { return nil }
        return blobs.entries[position].size.flatMap { UInt64(exactly: $0) }
      }
      if let newOnes, base != nil,
        let isIndexed = try archive.isIndexed(count, cid: { [self] in cid(at: $0) })
      {
        for position in 0..<count
        where isIndexed[position] && places[position] == 0 && lengths[position] == Self.absent {
          if let length = declared(position), !newOnes.contains(cid(at: position)) {
            lengths[position] = length
          }
        }
      }
      let others = (0..<count).filter { !archive.liesElsewhere || lengths[$0] == Self.absent }
      let states = try archive.states(
        others.count, isChecking: !archive.liesElsewhere, expectedLength: { declared(others[$0]) }
      ) { [self] in cid(at: others[$0]) }
      for (position, state) in zip(others, states) {
        if let length = state.bodyLength { lengths[position] = length }
        guard lengths[position] == Self.absent else { continue }
        // An extra was in the archive, so one that is not there is lost, too.
        let place = position - blobs.entries.count
        guard state.isDamaged || place >= 0 && position < extrasEnd else { continue }
        places[position] = Self.lost
        if place >= 0 { self.needs[place] = .listed }
      }
    }
    wantedPositions = dueNewestFirst()
  }

  /// What a snapshot lacks by its own ledger, which is to be all that it lacks, and what has come
  /// to it since.
  ///
  /// - Parameters:
  ///   - new: the blobs to which records refer now and did not before, none of which is held.
  ///   - ledger: what is missing.
  ///   - base: the snapshot.
  ///   - listing: what the server lists; nil if it was not asked.
  ///   - archive: what there is already.
  ///   - schedule: which blobs are requested again.
  /// - Throws: `ArchiveError` and ``SnapshotError`` if the archive cannot be read.
  package init(
    adding new: BlobTable, to ledger: BlobLedger.MissingList, of base: ArchivedSnapshot,
    listing: BlobListing?, archive: ArchiveReader, schedule: RetrySchedule
  ) throws {
    var (others, needs): (IndexedCIDs, [Need]) = (IndexedCIDs(), [])
    for entry in ledger where others.insert(entry.cid) {
      let isListed =
        listing?.fault != nil || listing.map { $0.known.place(of: entry.cid) != nil } ?? true
      needs.append(entry.isReferenced ? .referenced : isListed ? .listed : .none)
    }
    if let listing {
      // What is held is referred to, or an extra, as before.
      let unknown = CIDList(
        listing.list.lazy.filter { [others] in
          !new.contains($0) && others.place(of: $0) == nil
        })
      // Of a remote archive only the index is read: examining each blob would mean fetching all of
      // them.
      let areHeld =
        try archive.liesElsewhere
        ? unknown.map { try archive.mayHold($0) }
        : archive.states(unknown.count) { unknown[$0] }.map { $0.bodyLength != nil }
      for (cid, isHeld) in zip(unknown, areHeld) where !isHeld {
        others.insert(cid)
        needs.append(.listed)
      }
    }
    // What is missing is entered again.
    let known = BlobLedger(holding: base.snapshot.blobs, extras: try base.extras())
    self.init(
      new, others: others, needs, before: ledger, known, listing: listing, schedule: schedule)
    wantedPositions = dueNewestFirst()
  }

  /// All that has a position, none of which has been looked up.
  private init(
    _ table: BlobTable, others: IndexedCIDs, _ needs: [Need], before: BlobLedger.MissingList,
    _ known: BlobLedger, listing: BlobListing?, schedule: RetrySchedule?
  ) {
    (self.table, self.others, self.needs) = (table, others, needs)
    (self.before, self.known, self.schedule) = (before, known, schedule)
    // A server that was not asked has not mended its list.
    if let listing { self.known.counts.listFault = listing.fault }
    // A list of which nothing came says nothing.
    self.known.counts.listed =
      listing.flatMap { $0.fault != nil && $0.list.isEmpty ? nil : $0.list.count }
    // What comes from files is not counted.
    self.known.counts.new = schedule.map { _ in 0 }
    self.known.counts.newBytes = schedule.map { _ in 0 }
    let count = needs.count + table.entries.count
    lengths = [UInt64](repeating: Self.absent, count: count)
    places = [UInt32](repeating: 0, count: count)
    for (place, cid) in before.cids.enumerated() {
      guard let position = position(of: cid), places[position] == 0 else { continue }
      places[position] = UInt32(place) + 1
    }
  }

  /// The blobs that are requested now, in the order of ``wantedPositions``.
  ///
  /// Record keys are times as a rule. Blobs of records under other keys, a profile's picture for
  /// one, come first.
  private func dueNewestFirst() -> [UInt32] {
    guard let schedule else { return [] }
    func isDue(_ position: Int) -> Bool {
      lengths[position] == Self.absent && schedule.isDue(entry(position))
    }
    func key(_ position: Int) -> UInt64 {
      let key = table.entries[position].firstRecord.drop { $0 != "/" }.dropFirst()
      // The order of TIDs is that of their numbers.
      return (try? TID(String(key)))?.integer ?? .max
    }
    let referenced = table.entries.indices.filter(isDue).map { (key($0), UInt32($0)) }
    let others = (table.entries.count..<count).lazy
      .filter { needs[$0 - table.entries.count] != .none && isDue($0) }
    return referenced.sorted { $0 > $1 }.map(\.1) + others.map { UInt32($0) }
  }

  // MARK: Asking

  /// How many blobs the server lists; nil if that is not known.
  package var listedCount: Int? { known.counts.listed }

  /// How many blobs have a position.
  package var count: Int { lengths.count }

  /// How many blobs are requested.
  package var wantedCount: Int { wantedPositions.count }

  /// The blobs to request that have not been received.
  package var outstanding: [Wanted] {
    wantedPositions.lazy.filter { lengths[Int($0)] == Self.absent }.map { wanted(at: Int($0)) }
  }

  /// The blob with a position.
  func cid(at position: Int) -> CID {
    position < table.entries.count
      ? table.entries[position].cid : others.list[position - table.entries.count]
  }

  private func wanted(at position: Int) -> Wanted {
    let entry = entry(position)
    return Wanted(
      cid: entry.cid, declaredSize: entry.size, isReferenced: entry.isReferenced,
      position: position)
  }

  /// Records that a blob from a server is now in the archive.
  package mutating func received(_ blob: Wanted, length: UInt64) {
    lengths[blob.position] = length
    known.counts.receive(length)
  }

  // MARK: Files

  /// The position of a blob; nil if nothing is known of it.
  private func position(of cid: CID) -> Int? {
    table.number(of: cid) ?? others.place(of: cid).map { table.entries.count + $0 }
  }

  /// Whether a blob is held.
  package func isHeld(_ cid: CID) -> Bool {
    position(of: cid).map { lengths[$0] != Self.absent } ?? false
  }

  /// Whether a blob was held and lost, whatever has arrived since.
  package func isLost(_ cid: CID) -> Bool {
    position(of: cid).map { places[$0] == Self.lost } ?? false
  }

  /// Records that a blob from a file is now in the archive, even if nothing refers to it.
  package mutating func took(_ cid: CID, length: UInt64) {
    if let position = position(of: cid) { return lengths[position] = length }
    others.insert(cid)
    needs.append(.none)
    lengths.append(length)
    places.append(0)
  }

  /// Notes that something else was given for a blob, which is not news of one whose loss is
  /// accepted.
  package mutating func mismatched(_ cid: CID) {
    guard let position = position(of: cid), entry(position).accepted == nil else { return }
    places[position] = Self.mismatched
  }

  // MARK: The ledger

  /// The ledger entry of a blob that is not held, before it is requested.
  private func entry(_ position: Int) -> BlobLedger.Missing {
    let size = position < table.entries.count ? table.entries[position].size : nil
    func unlisted(_ reason: BlobLedger.Reason) -> BlobLedger.Missing {
      BlobLedger.Missing(cid: cid(at: position), reason: reason, size: nil)
    }
    var entry =
      switch places[position] {
      case 0: unlisted(schedule == nil ? .notProvided : .notTried)
      case Self.lost: unlisted(.lost)
      case Self.mismatched: unlisted(.mismatch)
      case let place: before[Int(place) - 1]
      }
    entry.size = size ?? entry.size
    entry.isReferenced = need(position) == .referenced
    if let schedule { entry.lastTried = schedule.lastTried(entry) }
    return entry
  }

  /// Why a blob is expected.
  private func need(_ position: Int) -> Need {
    position < table.entries.count ? .referenced : needs[position - table.entries.count]
  }

  /// The ledger, once all requests are done.
  ///
  /// - Parameters:
  ///   - moment: when blobs were requested.
  ///   - failure: why the blob with a position did not come; nil if it was not asked for.
  package func ledger(
    at moment: String? = nil, failure: (Int) -> BlobFailure? = { _ in nil }
  ) -> BlobLedger {
    var ledger = known
    for position in 0..<count {
      let need = need(position)
      guard lengths[position] == Self.absent else {
        let isReferenced = need == .referenced
        ledger.hold(cid(at: position), lengths[position], isReferenced: isReferenced)
        continue
      }
      guard need != .none else { continue }
      var entry = entry(position)
      if let failure = failure(position) {
        (entry.reason, entry.status) = (failure.reason, failure.status)
        (entry.firstTried, entry.lastTried) = (entry.firstTried ?? moment, moment)
      }
      ledger.miss(entry)
    }
    return ledger
  }
}
