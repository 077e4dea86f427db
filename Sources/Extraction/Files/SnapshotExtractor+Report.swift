extension SnapshotExtractor {
  /// What came of it.
  package struct Report: Sendable {
    /// What was written.
    package internal(set) var tally = OutputFolder.Tally()
    /// What could not be given back because it is damaged: what, and how.
    package internal(set) var damaged: [(what: String, why: String)] = []
    /// Names that no file may have.
    package internal(set) var refused: [String] = []
    /// The first of the files that are in the way: nothing was written then, or, if one came into
    /// the way meanwhile, everything else.
    package internal(set) var inTheWay: [String] = []
    /// How many files are in the way.
    package internal(set) var inTheWayCount = 0
    /// Blobs that are not in the archive.
    package internal(set) var missing: [String] = []
    /// Records that are not in the archive, though the tree names them.
    package internal(set) var missingRecords: [String] = []
    /// Nodes of the tree that are not in the archive, and with them all records below.
    package internal(set) var missingNodes: [String] = []
    /// Whether the CAR came in without some of its blocks, and is given back so.
    package internal(set) var isCARPartial = false
    /// Blobs whose content has the signature of another type than their record says.
    package internal(set) var mistyped: [String] = []
    /// Files that were to be removed, and were changed since they were extracted: the first of
    /// them.
    package internal(set) var changed: [String] = []
    /// Whether private data was asked for, and the snapshot has none.
    package internal(set) var lacksPrivateData = false
    /// Why files that the snapshot no longer has were not removed; nil if they were.
    package internal(set) var keptBecause: String?

    /// How many files in the way are named.
    static let maximumListed = 1000

    /// That nothing was done.
    package init() {}

    /// Whether there is nothing to say but how much was written.
    var isEmpty: Bool {
      damaged.isEmpty && refused.isEmpty && inTheWay.isEmpty && missing.isEmpty
        && missingRecords.isEmpty && missingNodes.isEmpty && mistyped.isEmpty && !isCARPartial
    }

    /// Adds what came of a later extraction into the same folder.
    package mutating func add(_ later: Report) {
      // It counts what was written into the folder, whatever for.
      tally = later.tally
      damaged += later.damaged
      refused += later.refused
      inTheWay += later.inTheWay.prefix(Self.maximumListed - inTheWay.count)
      inTheWayCount += later.inTheWayCount
      missing += later.missing
      missingRecords += later.missingRecords
      missingNodes += later.missingNodes
      isCARPartial = isCARPartial || later.isCARPartial
      mistyped += later.mistyped
      changed += later.changed
      lacksPrivateData = lacksPrivateData || later.lacksPrivateData
      keptBecause = keptBecause ?? later.keptBecause
    }

    mutating func addInTheWay(_ path: String) {
      if inTheWay.count < Self.maximumListed { inTheWay.append(path) }
      inTheWayCount += 1
    }
  }
}
