internal import ATProtocol
internal import Extraction
internal import Files
internal import IPLD
internal import Snapshots
internal import Terminal

/// The errors for what is not in the selected snapshot, or missing from the archive.
extension OpenedArchive {
  /// Runs `body` with a selector; if that finds nothing, the error says where the item is instead.
  func explainingAbsence<Value>(
    of selectors: [String], in snapshot: ArchivedSnapshot, _ body: () throws -> Value
  ) throws -> Value {
    do {
      return try body()
    } catch BackupError.notFound(let what) {
      let selector = selectors.first { $0 == what || $0.hasSuffix("/\(what)") } ?? what
      throw try absence(of: selector, in: snapshot)
    }
  }

  /// Why a selector matches nothing in a snapshot.
  func absence(of word: String, in snapshot: ArchivedSnapshot) throws -> any Error {
    if Selector.isShortOfCID(word) {
      return Failure(
        "\(word) is not in the archive",
        hint: "the beginning of a CID must have at least 6 characters", status: .noInput)
    }
    let history = try self.history
    let entries = history.entries.filter { $0.did == snapshot.snapshot.did }
    guard let here = entries.first(where: { $0.cid == snapshot.cid }) else {
      return notFound(word)
    }
    let place =
      here.cid == entries.last?.cid
      ? "the newest snapshot" : "snapshot number \(here.number), made \(here.createdAt)"
    let selector = try Selector(word)
    let path = selector.meansOneRecord ? try RecordHistory.path(word, in: entries, reader) : nil
    guard let path else {
      if case .cid(let cid) = selector, snapshot.state(of: cid) == .missing {
        return try absence(of: cid)
      }
      // A record was looked for in all of them, and a CID in the whole file.
      if selector.meansOneRecord || entries.count == 1 { return notFound(word) }
      if case .cid = selector { return notFound(word) }
      return Failure(
        "\(word) is not in \(place)",
        hint: "another snapshot may have it: \"carpack log\" lists them, --at chooses one",
        status: .noInput)
    }
    let record = try RecordHistory(of: path, in: entries, reader)
    let fate = record.deletion(upTo: here.number).map { "; deleted in snapshot \($0)" } ?? ""
    let number = record.snapshot(nearest: here.number, of: entries)
    return Failure(
      "\(word) is not in \(place)\(fate)",
      hint: number.map { "snapshot \($0) has it: --at \($0)" }, status: .noInput)
  }

  /// Why a CID is not in the archive: a snapshot may name it, as `ls` lists it.
  func absence(of cid: CID) throws -> any Error {
    let newest = try history.newestOfAccounts
    // Each takes a walk through its records, so of the older ones only those that lack something.
    let older = try history.entries.reversed().filter { entry in
      (entry.blobs.missing + entry.blobs.listedMissing > 0 || !entry.isComplete)
        && !newest.contains { $0.did == entry.did && $0.cid == entry.cid }
    }
    for (place, entry) in (newest + older).enumerated() {
      let at = place < newest.count ? nil : entry.number
      let found = try unlessDamaged { try lack(of: cid, in: snapshot(entry), at: at) }
      if let lack = found ?? nil { return lack }
    }
    return notFound("\(cid)")
  }

  /// The error for what was found nowhere; where something of the archive is damaged or unfinished,
  /// that says little, so what is wrong is printed.
  private func notFound(_ word: String) -> any Error {
    let status = status
    guard status != .success else { return BackupError.notFound(word) }
    return Failure("\(word) is not in what can be read of the archive", status: status)
  }

  /// Why a snapshot lacks a record or blob; nil if it names none with this CID.
  ///
  /// - Parameter number: its number, if it is an older one.
  private func lack(of cid: CID, in archived: ArchivedSnapshot, at number: Int?) throws
    -> (any Error)?
  {
    var reason = try archived.missingBlobs().first { $0.cid == cid }?.reason
    if reason == nil {
      var item: ListedItem?
      try ItemFilter([.cid(cid)]).forEachItem(
        of: archived, records: true, blobs: true, observer: { _ in }
      ) { item = $0 }
      guard let item else { return nil }
      guard item.kind == .blob else {
        return archived.snapshot.isComplete
          ? SnapshotError.blockMissing(cid) : SnapshotError.notPacked(cid)
      }
      reason = .notProvided
    }
    let file = Elsewhere.fileWord(name)
    return Failure(
      "\(cid) is missing from the archive\(reason.map { ": \($0.sentence)" } ?? "")",
      hint: number.map { "\"carpack missing --at \($0) \(file)\" says more" }
        ?? "\"carpack missing \(file)\" says more, \"carpack fill \(file)\" fetches missing blobs",
      status: .incomplete)
  }
}
