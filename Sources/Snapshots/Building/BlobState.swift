package import ATProtocol
internal import Archive
internal import Files
package import IPLD

/// The state in the archive of a blob that a record refers to.
package enum BlobState: Equatable, Sendable {
  /// It is there, this many bytes of it.
  case held(UInt64)
  /// It is missing.
  case missing
  /// What is there is damaged, and how.
  case damaged(String)

  /// Whether it is there.
  package var isHeld: Bool { if case .held = self { true } else { false } }

  /// The state in a word.
  package var word: String {
    switch self {
    case .held: "held"
    case .missing: "missing"
    case .damaged: "damaged"
    }
  }

  /// How many bytes are there; of a blob that is not, what a record declares.
  package func size(declared: Int?) -> UInt64? {
    if case .held(let length) = self { length } else { declared.map { UInt64(clamping: $0) } }
  }
}

extension ArchivedSnapshot {
  /// Looks up the states of many blobs in the order of the file, so that each frame is decompressed
  /// once.
  ///
  /// - Parameters:
  ///   - blobs: The blob.
  ///   - isChecking: Whether all that is stored of a blob is compared with its checksums; otherwise
  ///     of a large one only its beginning is looked at.
  ///   - sizes: How large each should be, as far as records say. Of a remote archive, a large blob
  ///     is not fetched to be looked at if the ledger does not say that it is missing, and the
  ///     index and the length of what is stored agree with its size.
  /// - Throws: `ArchiveError` and ``SnapshotError`` if the file cannot be read.
  /// - Returns: The state of each, in the order of `blobs`.
  package func states(of blobs: [CID], isChecking: Bool = false, sizes: [Int?] = []) throws
    -> [BlobState]
  {
    var sizes = sizes
    if reader.liesElsewhere, !sizes.isEmpty {
      let ledger = try ledger()
      if ledger.counts.missing >= snapshot.blobs.missing {
        let cids = Set(ledger.missing.cids)
        for (index, cid) in blobs.enumerated() where cids.contains(cid) { sizes[index] = nil }
      } else {
        // The ledger does not name all that is missing.
        sizes = []
      }
    }
    let expected = sizes
    return try reader.states(
      blobs.count, isChecking: isChecking,
      expectedLength: { $0 < expected.count ? expected[$0].flatMap { UInt64(exactly: $0) } : nil },
      cid: { blobs[$0] }
    ).map { state in
      switch state {
      case .held(_, let length): .held(length)
      case .missing: .missing
      case .damaged(let error): .damaged("\(error)")
      }
    }
  }

  /// The states in the archive of blobs that records refer to.
  ///
  /// - Parameters:
  ///   - entries: All to which records of the snapshot refer.
  ///   - isChecking: As in ``states(of:isChecking:sizes:)``.
  /// - Throws: As that does.
  /// - Returns: The state of each, and whether the index alone was asked: of a remote archive, if
  ///   it has as many of them as the manifest says are held. Sizes are then those that records
  ///   declare.
  package func states(of entries: BlobTable.Entries, isChecking: Bool = false) throws
    -> (states: [BlobState], isByIndex: Bool)
  {
    if reader.liesElsewhere, let states = try statesByIndex(of: entries) { return (states, true) }
    let states = try states(
      of: entries.map(\.cid), isChecking: isChecking, sizes: entries.map(\.size))
    return (states, false)
  }

  private func statesByIndex(of entries: BlobTable.Entries) throws -> [BlobState]? {
    let cids = entries.map(\.cid)
    guard let isHeld = try reader.isIndexed(cids.count, cid: { cids[$0] }),
      isHeld.count(where: \.self) == snapshot.blobs.held
    else { return nil }
    let sizes = entries.map { $0.size.flatMap { UInt64(exactly: $0) } }
    // Records of old times declare none.
    let unknown = cids.indices.filter { isHeld[$0] && sizes[$0] == nil }
    var lookedAt = try states(of: unknown.map { cids[$0] })[...]
    return cids.indices.map { place in
      guard isHeld[place] else { return .missing }
      return sizes[place].map { .held($0) } ?? lookedAt.removeFirst()
    }
  }

  /// The state of a blob in the archive.
  package func state(of blob: CID) -> BlobState {
    do {
      return try reader.section(of: blob).map { .held($0.bodyLength) } ?? .missing
    } catch {
      return .damaged("\(error)")
    }
  }
}

/// The parts of an archive that do not match their checksums.
package struct StoredDamage: Equatable, Sendable {
  /// How many sections do not, and were not written again.
  package var sectionCount = 0
  /// Whether, though all of them do, something else does not: an index, a footer or the header.
  package var isElsewhere = false
  /// Whether bytes that were committed cannot be decrypted, and what was in them is not known.
  package var isSealDamaged = false
  /// Whether its end was cut off after it was written, or all its snapshots are lost.
  package var isCutOff = false

  package init(sectionCount: Int = 0, isElsewhere: Bool = false) {
    (self.sectionCount, self.isElsewhere) = (sectionCount, isElsewhere)
  }

  /// Whether everything matches.
  package var isNone: Bool { self == StoredDamage() }
}

extension ArchiveStorage {
  /// What of this archive does not match its checksums.
  ///
  /// - Throws: `ArchiveError` if the file cannot be read.
  package func storedDamage() throws -> StoredDamage {
    // Whatever its owner has put into it is theirs.
    let reader = try ArchiveReader(
      map(), limits: ArchiveLimits(allowsLarge: true), ignoresTail: true)
    guard try reader.verify(.quick).worst == .damaged else { return StoredDamage() }
    let count = try reader.damagedSections().reduce(0) { $0 + $1.count }
    var damage = StoredDamage(sectionCount: count, isElsewhere: count == 0)
    damage.isSealDamaged = try !reader.file.damaged(in: 0..<reader.fileSize).isEmpty
    return damage
  }
}

extension ArchivedSnapshot {
  /// A blob that the archive lacks: what the ledger says; the record that refers to it first, nil
  /// if none does; its media type, as a record says; and what is wrong with it, if it is here and
  /// damaged.
  package typealias MissingBlob = (
    blob: BlobLedger.Missing, record: String?, mimeType: String?, damage: String?
  )

  /// The blobs that records refer to, or that a server listed, and that the archive does not hold
  /// now.
  ///
  /// What is stored of each is compared with its checksum, so this takes as long as to read the
  /// blobs once; except for a remote archive, of which the index may be enough.
  ///
  /// - Throws: ``BackupError``, ``SnapshotError`` and `ArchiveError` for a snapshot that is
  ///   damaged.
  /// - Returns: The blobs; and whether the index alone was asked, so that nothing is known of what
  ///   is stored.
  package func missingNow() throws -> (blobs: [MissingBlob], isByIndex: Bool) {
    let contents = try SnapshotBlocks(self).contents()
    if let flaw = contents.flaw { throw BackupError.carNotExact(flaw) }
    let referenced = contents.blobs.entries
    let noted = try missingBlobs()
    let known = Dictionary(noted.map { ($0.cid, $0) }, uniquingKeysWith: { first, _ in first })
    let extras = try self.extras().map { extra in
      var blob = BlobLedger.Missing(cid: extra, reason: .lost, size: nil)
      blob.isReferenced = false
      return blob
    }
    let others = noted.filter { !$0.isReferenced && !contents.blobs.contains($0.cid) } + extras
    let (found, isByIndex) = try states(of: referenced, isChecking: true)
    let states = found + (try states(of: others.map(\.cid), isChecking: !isByIndex))
    let blobs = states.enumerated().compactMap { place, state -> MissingBlob? in
      let damage: String?
      switch state {
      case .held: return nil
      case .missing: damage = nil
      case .damaged(let why): damage = why
      }
      guard place < referenced.count else {
        return (others[place - referenced.count], nil, nil, damage)
      }
      let entry = referenced[place]
      let blob =
        known[entry.cid]
        ?? BlobLedger.Missing(
          cid: entry.cid, reason: damage == nil ? .notProvided : .lost, size: entry.size)
      return (blob, entry.firstRecord, entry.mimeType, damage)
    }
    return (blobs, isByIndex)
  }
}
