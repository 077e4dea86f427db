import Archive
import ArchiveTestSupport
import Copying
import Failures
import Files
import IPLD
import Packing
import Snapshots
import SystemPackage
import Terminal
import TestSupport
import Verification

/// Verbs are run, interrupted and run again, and what they leave is looked at.
extension SequenceArchive {
  /// A verb that writes to the file: what it says is damaged still; nil if nothing is.
  typealias Change = (any ArchiveStorage) throws -> String?

  /// What became of a run.
  private enum Ending {
    case done(damage: String?)
    case refused(any Error)
    case interrupted(any Error)
  }

  /// Runs a verb that writes to the file; at times it is interrupted, and run again.
  ///
  /// - Parameters:
  ///   - words: What it is.
  ///   - isAppend: Whether it may drop what is left of torn frames behind the last footer.
  ///   - copy: What it may take over.
  ///   - verb: The verb.
  mutating func change(
    _ words: String, isAppend: Bool = false, from copy: [UInt8]? = nil, _ verb: Change
  ) throws {
    let copy = copy.map { SequenceFindings($0, states) }
    let before = file
    let found = SequenceFindings(before, states)
    let kept = isAppend ? found.walk.keptByWriters : nil
    if random.next() % 2 == 0 {
      let interruption = SequenceInterruption(&random)
      let storage = MemoryStorage(before, interruption.conditions(before.count))
      let ending = try run(verb, on: storage)
      file = interruption.bytes(in: storage)
      if case .interrupted(let error) = ending {
        steps.append("\(words), interrupted by \(interruption): \(error)")
        counts["interrupted by \(interruption.kind.rawValue)", default: 0] += 1
        if interruption.kind == .fullDisk, (error as? any Explained)?.explanation.status == .damaged
        {
          throw Unexpected("a full disk is called damage: \(error)")
        }
        try requireNothingLost(found, kept, "\(words), interrupted")
        try runAgain(words, from: before, found, kept, copy, verb)
        return
      }
      file = before
    }
    let storage = MemoryStorage(before)
    switch try run(verb, on: storage) {
    case .done(let damage):
      file = storage.bytes
      steps.append(words + (damage.map { ": damaged still: \($0)" } ?? ": done"))
      if storage.bytes(after: .ofEverything) != file {
        failures.append("(R) \(words) ends before all of it is on the medium")
      }
      try require(found, kept, copy, damage: damage, words)
    case .refused(let error), .interrupted(let error):
      file = storage.bytes
      steps.append("\(words): refused: \(error)")
      counts["refused", default: 0] += 1
      try requireNothingLost(found, kept, "\(words), refused")
      // What is repaired in place is refused only if there is nothing whole, or nothing that it
      // understands.
      if words.hasPrefix("repair"), !isGlued, !found.whole.isEmpty {
        throw Unexpected("(P) \(words) refuses an archive with whole snapshots: \(error)")
      }
    }
  }

  private func run(_ verb: Change, on storage: MemoryStorage) throws -> Ending {
    do {
      let damage = try verb(storage)
      return storage.failureCount > 0
        ? .interrupted(Unexpected("it ended well all the same")) : .done(damage: damage)
    } catch let error as MemoryStorage.Misuse {
      throw error
    } catch {
      return storage.failureCount > 0 ? .interrupted(error) : .refused(error)
    }
  }

  /// The same command again, after it was interrupted.
  private mutating func runAgain(
    _ words: String, from before: [UInt8], _ found: SequenceFindings, _ kept: Set<CID>?,
    _ copy: SequenceFindings?, _ verb: Change
  ) throws {
    let storage = MemoryStorage(file)
    switch try run(verb, on: storage) {
    case .done(let damage):
      file = storage.bytes
      steps.append("\(words) again" + (damage.map { ": damaged still: \($0)" } ?? ": done"))
      try require(found, kept, copy, damage: damage, "\(words) again")
      if damage != nil, !words.hasPrefix("repair") { return }
      guard let damage, case .done(nil) = try run(verb, on: MemoryStorage(before)) else { return }
      throw Unexpected("(R) \(words) again says \"\(damage)\", and says nothing uninterrupted")
    case .refused(let error), .interrupted(let error):
      file = storage.bytes
      steps.append("\(words) again: refused: \(error)")
      try requireNothingLost(found, kept, "\(words) again, refused")
      // What is refused for another reason than that it was interrupted is not this rule's.
      guard case .done = try run(verb, on: MemoryStorage(before)) else { return }
      try followHint(of: error, words, found, kept, verb)
    }
  }

  /// Does what the refusal says, and then what was refused.
  private mutating func followHint(
    of error: any Error, _ words: String, _ found: SequenceFindings, _ kept: Set<CID>?,
    _ verb: Change
  ) throws {
    let hint = (error as? any Explained)?.explanation.hint ?? ""
    let isIntoNew = hint.contains("carpack repair -o")
    guard isIntoNew || hint.contains("carpack repair") else {
      throw Unexpected("(R) \(words) again is refused, and no command is named: \(error) (\(hint))")
    }
    if isIntoNew {
      try repairIntoNew()
    } else {
      let storage = MemoryStorage(file)
      _ = try ArchiveRepair.repair(storage)
      file = storage.bytes
    }
    steps.append("what the hint says")
    let storage = MemoryStorage(file)
    guard case .done(let damage) = try run(verb, on: storage) else {
      throw Unexpected("(R) \(words) is refused after what its hint says: \(error)")
    }
    file = storage.bytes
    try require(found, kept, damage: damage, "\(words) after what its hint says")
  }

  // MARK: New files

  /// Runs a verb that makes a new file in the place of the old one.
  mutating func renew(
    _ words: String, with other: [UInt8]? = nil,
    _ verb: (FilePath, ArchiveCopier) throws -> Void
  ) throws {
    let path = FilePath(try folder.write("a.car.zst", file))
    let found = SequenceFindings(file, states)
    let names = folder.names()
    if random.next() % 2 == 0 {
      let interruption = SequenceInterruption(&random)
      var storages: [InterruptedStorage] = []
      let copier = ArchiveCopier(storage: { target in
        let storage = interruption.storage(over: try target.storage())
        storages.append(storage)
        return storage
      })
      do {
        try verb(path, copier)
      } catch {
        if storages.contains(where: \.isReached) {
          steps.append("\(words), interrupted by \(interruption): \(error)")
          counts["interrupted by \(interruption.kind.rawValue)", default: 0] += 1
          if interruption.kind == .fullDisk,
            (error as? any Explained)?.explanation.status == .damaged
          {
            throw Unexpected("a full disk is called damage: \(error)")
          }
        }
        guard try folder.read("a.car.zst") == file, folder.names() == names else {
          throw Unexpected("\(words), interrupted, changes the old file or leaves another")
        }
      }
    }
    // If it was not interrupted it is done once more.
    do {
      try verb(path, ArchiveCopier())
    } catch {
      steps.append("\(words): refused: \(error)")
      counts["refused", default: 0] += 1
      guard try folder.read("a.car.zst") == file, folder.names() == names else {
        throw Unexpected("\(words), refused, changes the old file or leaves another")
      }
      let verdict = try verdict(of: file)
      // What an unfinished write has left is taken over first.
      if verdict == .intact { throw Unexpected("\(words) refuses an intact archive: \(error)") }
      return
    }
    file = try folder.read("a.car.zst")
    steps.append("\(words): done")
    isGlued = false
    try requireCopied(found, words)
    if let other { try requireCopied(SequenceFindings(other, states), words) }
  }

  /// Repairs into a new file, which takes the place of the old one.
  mutating func repairIntoNew() throws {
    let words = "repair -o NEW"
    let found = SequenceFindings(file, states)
    let storage = MemoryStorage()
    do {
      let reader = try ArchiveReader(MappedFile(copying: file))
      _ = try ArchiveCopier().salvage(reader, into: storage, by: options().provenance)
    } catch {
      steps.append("\(words): refused: \(error)")
      guard found.manifests.isEmpty || isGlued else {
        throw Unexpected("(P) \(words) refuses an archive of which something is left: \(error)")
      }
      return
    }
    file = storage.bytes
    isGlued = false
    steps.append("\(words): done")
    try requireCopied(found, words, isSalvage: true)
  }

  // MARK: What is left

  private func verdict(of bytes: [UInt8]) throws -> SnapshotVerifier.Verdict? {
    do {
      let reader = try ArchiveReader(MappedFile(copying: bytes))
      return try SnapshotVerifier().verify(reader, .full).verdict
    } catch is ArchiveError {
      return nil
    }
  }

  /// Whatever an interrupted or refused verb did, nothing that was intact is lost by it.
  private func requireNothingLost(_ found: SequenceFindings, _ kept: Set<CID>?, _ words: String)
    throws
  {
    let after = ForwardWalk(file)
    for cid in found.walk.bodies.keys where kept?.contains(cid) != false {
      guard after.bodies[cid] != nil else {
        throw Unexpected("(P) \(words): the section \(cid) was intact, and is not any more")
      }
    }
  }

  /// Requires everything of the file that a verb has left.
  private func require(
    _ found: SequenceFindings, _ kept: Set<CID>?, _ copy: SequenceFindings? = nil,
    damage: String?, _ words: String
  ) throws {
    do {
      let (verdict, proven) = try SequenceFindings.requireTruth(of: file, states)
      // Only repairing has to find what is left of damaged frames; that it is there is enough for
      // other verbs, as long as verifying says that there is damage.
      let isLeft = verdict == .damaged && !words.hasPrefix("repair")
      if isLeft { try requireNothingLost(found, kept, words) }
      try found.require(of: file, sections: isLeft ? [] : kept, besides: proven)
      if let copy, damage == nil { try found.requireHealed(of: file, from: copy) }
      if words.hasPrefix("repair"), (verdict == .damaged) != (damage != nil) {
        throw Unexpected(
          "(Q) it ends with \(damage.map { "\"\($0)\"" } ?? "nothing damaged"), and verify says \(verdict)"
        )
      }
    } catch let error as Unexpected {
      throw Unexpected("after \(words): \(error)")
    }
  }

  /// Requires of a new file that everything is in it that a copy keeps.
  private func requireCopied(
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
      let (verdict, proven) = try SequenceFindings.requireTruth(of: file, states)
      try found.require(of: file, sections: sections, besides: proven)
      if verdict == .damaged { throw Unexpected("(Q) the new file is damaged") }
    } catch let error as Unexpected {
      throw Unexpected("after \(words): \(error)")
    }
  }

  /// Requires of the file, whatever it has become, that its verdict is true, and that it can be
  /// repaired in either way and be gone on with.
  mutating func requireEnd() throws {
    let found = SequenceFindings(file, states)
    if try verdict(of: file) != nil {
      do {
        try SequenceFindings.requireTruth(of: file, states)
      } catch let error as Unexpected {
        throw Unexpected("at the end: \(error)")
      }
    }
    guard !found.whole.isEmpty else { return }
    let last = file
    try repairIntoNew()
    file = last
    steps.removeLast()
    try change("repair at the end") { storage in try ArchiveRepair.repair(storage).damage }
    let repaired = MemoryStorage(file)
    if !isGlued {
      _ = try ArchiveRepair.repair(repaired)
      guard repaired.bytes == file else {
        throw Unexpected("to repair what was repaired changes it again")
      }
    }
    try perform(.append)
  }
}

extension ForwardWalk {
  /// What a writer keeps: all but what is left of torn frames behind the last footer.
  fileprivate var keptByWriters: Set<CID> {
    inWholeFrames.union(beforeLastFooter)
  }
}
