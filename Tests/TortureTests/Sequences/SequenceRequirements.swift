import Archive
import ArchiveTestSupport
import Copying
import IPLD
import Snapshots
import TestSupport
import Verification

/// What is required of the file after each verb, and at the end of a sequence.
extension SequenceArchive {
  func verdict(of bytes: [UInt8]) throws -> SnapshotVerifier.Verdict? {
    do {
      let reader = try ArchiveReader(MappedFile(copying: bytes).archive())
      return try SnapshotVerifier().verify(reader, .full).verdict
    } catch is ArchiveError {
      return nil
    }
  }

  /// Whatever an interrupted or refused verb did, nothing that was intact is lost by it.
  func requireNothingLost(_ found: SequenceFindings, _ words: String) throws {
    let after = try ForwardWalk(TestSeal.plain(file), seams: seams)
    for cid in found.walk.bodies.keys {
      guard after.bodies[cid] != nil else {
        throw Unexpected("(P) \(words): the section \(cid) was intact, and is not any more")
      }
    }
  }

  /// Requires everything of the file that a verb has left.
  mutating func require(
    _ found: SequenceFindings, _ copy: SequenceFindings? = nil, damage: String?, _ words: String
  ) throws {
    do {
      let (verdict, proven) = try SequenceFindings.requireTruth(of: file, states, seams: seams)
      // Only repairing has to find what is left of damaged frames; that it is there is enough for
      // other verbs, as long as verifying says that there is damage.
      let isLeft = verdict == .damaged && !words.hasPrefix("repair")
      if isLeft { try requireNothingLost(found, words) }
      try found.require(
        of: file, sections: isLeft ? [] : nil, besides: proven, isSurveyed: isLeft)
      if let copy, damage == nil { try found.requireHealed(of: file, from: copy) }
      if words.hasPrefix("repair"), (verdict == .damaged) != (damage != nil) {
        throw Unexpected(
          "(Q) it ends with \(damage.map { "\"\($0)\"" } ?? "nothing damaged"), and verify says \(verdict)"
        )
      }
      if verdict != .damaged {
        try noteGivenUp()
      } else if words.hasPrefix("pack") {
        // What an unfinished write has left is replaced, whatever else is damaged.
        try noteGivenUp(besides: found.walk.beforeLastFooter)
      }
    } catch let error as Unexpected {
      throw Unexpected("after \(words): \(error)")
    }
  }

  /// Notes the snapshots of a file in which nothing is damaged that are not listed: a verb gave
  /// them up, because a torn write has left them without some blocks, which may come with others
  /// later.
  ///
  /// - Parameter committed: the sections that were committed before, which no verb gives up.
  private mutating func noteGivenUp(besides committed: Set<CID> = []) throws {
    let history = try SnapshotHistory(of: ArchiveReader(MappedFile(copying: file).archive()))
    let listed = Set(history.entries.compactMap(\.carSHA256))
    for (cid, snapshot) in try SequenceFindings(file, states, seams: seams).manifests
    where !committed.contains(cid) {
      if let digest = snapshot.car.sha256, !listed.contains(digest) { states.givenUp.insert(cid) }
    }
  }

  /// Requires of a new file that everything is in it that a copy keeps.
  func requireCopied(
    _ found: SequenceFindings, _ words: String, isSalvage: Bool = false
  ) throws {
    do {
      var sections = Set(found.walk.bodies.keys)
      if isSalvage {
        sections.subtract(found.manifests.keys)
        for manifest in found.manifests.values { sections.subtract(manifest.car.pages) }
      } else {
        sections = Set(found.whole.flatMap { states[$0.digest]?.blobs ?? [] })
          .intersection(sections)
      }
      let (verdict, proven) = try SequenceFindings.requireTruth(of: file, states, seams: seams)
      try found.require(of: file, sections: sections, besides: proven)
      if verdict == .damaged { throw Unexpected("(Q) the new file is damaged") }
    } catch let error as Unexpected {
      throw Unexpected("after \(words): \(error)")
    }
  }

  /// Requires of the file, whatever it has become, that its verdict is true, and that it can be
  /// repaired in either way and used afterwards.
  mutating func requireEnd() throws {
    let found = try SequenceFindings(file, states, seams: seams)
    if try verdict(of: file) != nil {
      do {
        try SequenceFindings.requireTruth(of: file, states, seams: seams)
      } catch let error as Unexpected {
        throw Unexpected("at the end: \(error)")
      }
    }
    guard !found.whole.isEmpty else { return }
    let last = (file, seams)
    try repairIntoNew()
    (file, seams) = last
    steps.removeLast()
    try putInOrder()
    try change("repair at the end") { storage in try ArchiveRepair.repair(storage).damage }
    let repaired = MemoryStorage(file)
    if !isGlued {
      _ = try ArchiveRepair.repair(repaired.archive())
      guard repaired.bytes == file else {
        throw Unexpected("to repair what was repaired changes it again")
      }
    }
    try perform(.append)
  }
}
