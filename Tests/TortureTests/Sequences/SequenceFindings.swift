import ATProtocol
import Archive
import ArchiveTestSupport
import Files
import IPLD
import Snapshots
import Verification

/// What a sequence requires of an archive, by what a forward walk found intact.
///
/// - (P) What is intact can be read, or is named as lost.
/// - (Q) No archive is called intact of which that is not true, and none not genuine.
/// - (S) Snapshots are listed in the order of their revisions.
struct SequenceFindings {
  /// A snapshot of which everything is intact.
  typealias Whole = (manifest: CID, did: DID, digest: SHA256Digest)

  let walk: ForwardWalk
  let states: PackedStates
  /// The manifests that were found, whether their snapshots are whole or not.
  private(set) var manifests: [CID: Snapshot] = [:]
  /// The snapshots of which everything was found.
  private(set) var whole: [Whole] = []

  /// What is found in a file.
  ///
  /// - Parameters:
  ///   - bytes: The file.
  ///   - states: What was ever packed.
  ///   - seams: Where archives begin that were glued after the first: nothing of one is needed by
  ///     the snapshots of another.
  init(_ bytes: [UInt8], _ states: PackedStates, seams: [Int] = []) throws {
    walk = try ForwardWalk(TestSeal.plain(bytes), seams: seams)
    self.states = states
    for (cid, body) in walk.bodies where cid.codec == .dagCBOR {
      // Whether it is a manifest is the question.
      guard let snapshot = try? Snapshot(body.span) else { continue }
      manifests[cid] = snapshot
    }
    // Where nothing is left of an archive's beginning, nothing tells that it is another one.
    guard walk.beginnings.isSuperset(of: seams) else { return }
    whole = Set(walk.alone).compactMap { whole($0, seams, with: nil) }
  }

  /// The snapshot of a manifest, if everything of it was found in its archive or in a copy.
  private func whole(_ manifest: CID, _ seams: [Int], with copy: Self?) -> Whole? {
    guard let snapshot = manifests[manifest], !states.givenUp.contains(manifest),
      let digest = snapshot.car.sha256, let known = states[digest]
    else { return nil }
    func archive(at place: Int) -> Int { seams.count { $0 <= place } }
    let archives = Set((walk.places[manifest] ?? []).map(archive))
    let isWhole = archives.contains { number in
      func has(_ cid: CID) -> Bool {
        walk.places[cid]?.contains { archive(at: $0) == number } == true
          || copy?.walk.bodies[cid] != nil
      }
      guard known.blocks.allSatisfy(has) else { return false }
      var next: Snapshot? = snapshot
      for _ in 0..<40 {
        guard let current = next, current.car.pages.allSatisfy(has) else { return false }
        guard let base = current.car.base else { return true }
        next = has(base) ? manifests[base] ?? copy?.manifests[base] : nil
      }
      return false
    }
    return isWhole ? (manifest, snapshot.did, digest) : nil
  }

  /// Leaves out snapshots whose loss was named, under whichever manifest they are here; their
  /// sections have to be there anyway.
  func leavingOut(_ named: [CID]) -> Self {
    let digests = Set(named.compactMap { manifests[$0]?.car.sha256 })
    var rest = self
    rest.whole.removeAll { digests.contains($0.digest) }
    return rest
  }

  /// Requires of an archive that was repaired from a copy, and of which nothing is said to be
  /// damaged, that it has all that the manifests here need and the copy has.
  func requireHealed(of bytes: [UInt8], from copy: Self) throws {
    let history = try SnapshotHistory(of: ArchiveReader(MappedFile(copying: bytes).archive()))
    for cid in walk.alone where walk.beforeLastFooter.contains(cid) {
      if let snapshot = whole(cid, [], with: copy) { try requireListed(snapshot, in: history) }
    }
  }

  /// Requires of an archive that it gives back what was found in another, or in itself.
  ///
  /// - Parameters:
  ///   - bytes: The archive.
  ///   - sections: The sections that have to be there; nil for all that were found.
  ///   - proven: What is known to be given back.
  ///   - isSurveyed: Whether it is enough that it is found once damage is known of.
  func require(
    of bytes: [UInt8], sections: Set<CID>? = nil, besides proven: Self? = nil,
    isSurveyed: Bool = false
  ) throws {
    let wanted = walk.bodies.filter { cid, _ in
      sections?.contains(cid) != false && proven?.walk.bodies[cid] == nil
    }
    let snapshots = whole.filter { snapshot in
      proven?.whole.contains { $0.did == snapshot.did && $0.digest == snapshot.digest } != true
    }
    guard !wanted.isEmpty || !snapshots.isEmpty else { return }
    let reader = try ArchiveReader(MappedFile(copying: bytes).archive())
    for (cid, body) in wanted {
      let read: [UInt8]?
      do {
        read = try reader.body(of: cid)
      } catch {
        throw Unexpected("(P) the section \(cid) is intact and cannot be read: \(error)")
      }
      guard read == body else {
        let what = manifests[cid] != nil ? "manifest" : "section"
        throw Unexpected("(P) the \(what) \(cid) is intact and is not found")
      }
    }
    guard !snapshots.isEmpty else { return }
    let history = try SnapshotHistory(of: isSurveyed ? reader.surveyed() : reader)
    for snapshot in snapshots { try requireListed(snapshot, in: history) }
  }

  private func requireListed(_ snapshot: Whole, in history: SnapshotHistory) throws {
    let listed = history.entries.filter {
      $0.did == snapshot.did && $0.carSHA256 == snapshot.digest
    }
    guard let entry = listed.last else {
      throw Unexpected(
        "(P) the snapshot \(manifests[snapshot.manifest]?.createdAt ?? "") of \(snapshot.did), \(snapshot.manifest), is whole and not listed"
      )
    }
    let restored = try RestoredRepository(ArchivedSnapshot(entry.cid, in: history.reader))
    if restored.withBytes({ $0.array }) == states[snapshot.digest]?.car { return }
    // What told the order of the blocks may be lost, though every block is there. That is named.
    let report = try SnapshotVerifier().verify(history.reader, .full)
    guard try history.reader.mayHaveLostOrders, restored.flaw != nil, report.verdict == .damaged
    else {
      throw Unexpected(
        "(P) the snapshot \(entry.createdAt) of \(snapshot.did) is whole and its CAR is not given back: \(restored.flaw ?? "another CAR")"
      )
    }
  }

  /// Requires of the archive's verdict that it is true.
  ///
  /// - Returns: The verdict; and what was found in the archive, if all of it is given back.
  @discardableResult
  static func requireTruth(of bytes: [UInt8], _ states: PackedStates, seams: [Int] = []) throws
    -> (verdict: SnapshotVerifier.Verdict, proven: Self?)
  {
    let reader = try ArchiveReader(MappedFile(copying: bytes).archive())
    let report = try SnapshotVerifier().verify(reader, .full)
    let history = try SnapshotHistory(of: reader)
    try requireOrder(of: history)
    // It says that the remains of an unfinished write are not examined.
    guard report.verdict != .damaged, report.archive.worst != .interruptedTail else {
      return (report.verdict, nil)
    }
    let found = try SequenceFindings(bytes, states, seams: seams)
    do {
      if let place = found.walk.damagedVoids.first {
        throw Unexpected("the checksum of the void at \(place) does not hold")
      }
      try found.require(of: bytes)
      for entry in history.entries where entry.isVouched {
        try found.requireBlobs(of: entry, in: history.reader)
      }
    } catch {
      throw Unexpected("(Q) \(report.verdict), and yet: \(error)")
    }
    return (report.verdict, found)
  }

  /// Each blob that a snapshot refers to is listed as missing or can be read.
  private func requireBlobs(of entry: SnapshotHistory.Entry, in reader: ArchiveReader) throws {
    guard let digest = entry.carSHA256, let known = states[digest] else { return }
    if !whole.contains(where: { $0.digest == digest }) {
      let restored = try RestoredRepository(ArchivedSnapshot(entry.cid, in: reader))
      guard restored.withBytes({ $0.array }) == known.car else {
        throw Unexpected("the CAR of \(entry.createdAt) is not given back")
      }
    }
    var missing = 0
    for blob in known.blobs where try reader.body(of: blob) == nil { missing += 1 }
    guard missing <= entry.blobs.missing else {
      throw Unexpected(
        "\(missing) blobs of \(entry.createdAt) cannot be read, and \(entry.blobs.missing) are said to be missing"
      )
    }
  }

  private static func requireOrder(of history: SnapshotHistory) throws {
    if let disruption = history.disruptions.first {
      throw Unexpected(
        "(Q) not genuine: snapshot \(history.entries[disruption.after].number) is called a \(disruption.kind)"
      )
    }
    var last: [DID: TID] = [:]
    for entry in history.entries where entry.isVouched {
      guard let rev = entry.rev else { continue }
      if let before = last[entry.did], before.text > rev.text {
        throw Unexpected("(S) \(rev) is listed behind \(before)")
      }
      last[entry.did] = rev
    }
  }
}

extension ArchiveReader {
  /// Whether sections may have other numbers than they had: damage took them, or a repair gave
  /// them.
  var mayHaveLostOrders: Bool {
    get throws { try surveyed().certainEnd != .max || generation.features.isRepaired }
  }
}
