import Archive
import ArchiveTestSupport
import Copying
import Files
import IPLD
import Snapshots
import SystemPackage
import Terminal
import TestSupport

/// A kind of thing that is done to an archive.
enum SequenceStep: String, CaseIterable {
  case damage, repair, repairFromCopy, repairIntoNew, append, fill, compact, merge, mergeCopy, pull,
    glue, gluePiece, firstPack, joinBranch, putBack, hybrid, copyOver

  /// How often it comes, in relation to the others.
  private var weight: Int {
    switch self {
    case .damage: 8
    case .repair, .append: 4
    case .repairFromCopy: 3
    case .pull: 2
    case .repairIntoNew, .fill, .compact, .merge, .mergeCopy, .glue, .gluePiece, .firstPack: 1
    case .joinBranch, .hybrid: 2
    case .putBack, .copyOver: 1
    }
  }

  /// Whether it is done to sealed archives, too: these are not glued or joined, and how they are
  /// pulled and begun is another test's.
  var isForSealed: Bool {
    switch self {
    case .pull, .glue, .gluePiece, .firstPack, .joinBranch, .putBack, .hybrid, .copyOver: false
    default: true
    }
  }

  /// One of these; those with more weight come more often.
  static func any(of steps: [Self], _ random: inout SeededGenerator) -> Self {
    var choice = Int(random.next() % UInt64(steps.reduce(0) { $0 + $1.weight }))
    return steps.first { step in
      choice -= step.weight
      return choice < 0
    } ?? .damage
  }
}

extension SequenceArchive {
  /// Does something.
  mutating func perform(_ step: SequenceStep) throws {
    counts[step.rawValue, default: 0] += 1
    switch step {
    case .damage:
      let before = file
      let (words, place, growth) = SequenceDamage.befall(&file, &random)
      if isUnopenable {
        file = before
        return
      }
      for index in seams.indices where seams[index] > place {
        seams[index] = max(place, seams[index] + growth)
      }
      steps.append(words)
    case .repair:
      try putInOrder()
      try change("repair") { storage in try Self.repair(storage, from: []) }
    case .repairFromCopy:
      let copy = copy
      try putInOrder()
      try change("repair --from the copy", from: copy) { storage in
        try Self.repair(storage, from: [ArchiveReader(MappedFile(copying: copy).archive())])
      }
    case .repairIntoNew: try repairIntoNew()
    case .append, .fill:
      let isFill = step == .fill && account.hasLate
      let state = try isFill ? account.filled() : account.next(&random)
      try prepare(state)
      let (archive, options) = (self, options())
      try change(
        isFill ? "pack with blobs that were missing" : "pack of the next state"
      ) { storage in
        try archive.pack(state, into: storage, options)
        return nil
      }
    case .compact:
      try renew("compact") { path, copier in
        _ = try copier.compact(path)
      }
    case .merge, .mergeCopy:
      let other = try step == .merge ? otherArchive() : copy
      let otherPath = FilePath(try folder.write("other.car.zst", other))
      let words = step == .merge ? "merge with another account's" : "merge with the copy"
      try renew(words, with: other) { path, copier in
        let archives = try [path, otherPath].map {
          try SourceArchive(ArchiveReader(path: $0), name: $0.lastComponent?.string ?? "")
        }
        _ = try copier.merge(archives, to: AtomicFile(path, replacing: true))
      }
    case .joinBranch:
      let branch = try branch()
      var tail = branch[older.count...]
      if random.next() % 2 == 0, let end = Self.firstSkippable(in: tail) { tail = tail[..<end] }
      file += tail
      steps.append(
        "the \(tail.count) bytes that another copy has behind the older piece are joined")
    case .putBack:
      (file, seams) = (older, [])
      steps.append("the older piece, \(older.count) bytes, is put back")
    case .hybrid:
      let other = try random.next() % 2 == 0 ? branch() : copy
      let place = Int(random.next() % UInt64(max(1, min(file.count, other.count))))
      let isBeginning = random.next() % 2 == 0
      let (front, back) = isBeginning ? (file, other) : (other, file)
      file = Array(front[..<place])
      file += back[place...]
      seams.removeAll { isBeginning ? $0 > place : $0 < place }
      steps.append("a copy of another state stopped at \(place): \(file.count) bytes")
    case .copyOver:
      let other = try branch()
      if other.count < file.count {
        file.replaceSubrange(..<other.count, with: other)
      } else {
        file = other
      }
      seams.removeAll { $0 < other.count }
      steps.append("another state, \(other.count) bytes, is copied over it")
    case .pull: try pull()
    case .firstPack: try packFirst()
    case .glue:
      let other = try otherArchive()
      let isBehind = random.next() % 2 == 0
      seams = isBehind ? seams + [file.count] : [other.count] + seams.map { $0 + other.count }
      file = isBehind ? file + other : other + file
      steps.append(
        "another archive of \(other.count) bytes is glued \(isBehind ? "behind" : "before") it")
    case .gluePiece:
      seams.append(file.count)
      file += older
      steps.append("an older piece of itself, \(older.count) bytes, is glued behind it")
    }
  }

  /// Where the first frame that is no data begins, for a tail without its index and footer.
  private static func firstSkippable(in tail: ArraySlice<UInt8>) -> Int? {
    let word: [UInt8] = [0x5c, 0x2a, 0x4d, 0x18]
    return tail.indices.dropLast(word.count).first {
      tail[$0..<$0 + word.count].elementsEqual(word)
    }
  }

  /// Heals a sealed archive from the parity around its pieces, and writes one anew of which pieces
  /// are lost or moved, as the command does before it repairs in place.
  mutating func putInOrder() throws {
    let storage = MemoryStorage(file)
    do {
      let healed = try storage.map().layer?.heal(storage) ?? 0
      if healed > 0 {
        file = storage.bytes
        steps.append("\(healed) bytes healed from the parity around it")
      }
      let archive = try storage.archive()
      guard try archive.isDisplaced else { return }
      let new = MemoryStorage()
      try archive.putInOrder(in: new)
      file = new.bytes
      steps.append("written anew, for pieces were lost or moved: \(file.count) bytes")
    } catch is any Explained {
      // An archive that cannot be opened is refused by the next step.
    }
  }

  /// Repairs in place.
  ///
  /// - Returns: What is damaged still; nil if nothing is.
  private static func repair(_ storage: any ArchiveStorage, from sources: [ArchiveReader]) throws
    -> String?
  {
    let outcome = try ArchiveRepair.repair(storage, from: sources)
    return outcome.damage
  }
}
