package import IPLD

extension BlobLedger {
  /// Entries of the ledger in little memory: some fifty bytes each.
  ///
  /// An account may lack a million blobs; their other fields are mostly the same.
  public struct MissingList: Sendable, RandomAccessCollection, Equatable, ExpressibleByArrayLiteral
  {
    /// The blobs.
    package private(set) var cids: CIDList = []
    /// Their lengths; ``absent`` for those that are not known.
    private var sizes: [Int] = []
    /// For each, the number of its other fields.
    private var numbers: [UInt32] = []
    /// The fields of entries other than the CID and the length, each combination once.
    private var said: [Missing] = []
    private var known: [Missing: UInt32] = [:]

    private static let absent = Int.min
    /// A placeholder for the CIDs of all blobs.
    private static let nothing = CID(codec: .raw, digest: SHA256Digest(words: (0, 0, 0, 0)))

    /// A list of these.
    package init(_ entries: some Sequence<Missing> = EmptyCollection()) {
      for entry in entries { append(entry) }
    }

    /// A list of these.
    public init(arrayLiteral elements: Missing...) { self.init(elements) }

    /// The place of the first.
    public var startIndex: Int { 0 }
    /// The place after the last.
    public var endIndex: Int { numbers.count }

    /// The entry in a place.
    public subscript(place: Int) -> Missing {
      var entry = said[Int(numbers[place])]
      entry.cid = cids[place]
      entry.size = sizes[place] == Self.absent ? nil : sizes[place]
      return entry
    }

    /// Adds an entry at the end.
    package mutating func append(_ entry: Missing) {
      cids.append(entry.cid)
      sizes.append(entry.size ?? Self.absent)
      var entry = entry
      (entry.cid, entry.size) = (Self.nothing, nil)
      let number = known[entry] ?? UInt32(said.count)
      if number == said.count {
        said.append(entry)
        known[entry] = number
      }
      numbers.append(number)
    }

    /// How many blobs are missing for which reason, the most frequent first; accepted losses do not
    /// count.
    package var byReason: [(reason: Reason, count: Int)] {
      var counts: [Reason: Int] = [:]
      for entry in self where entry.accepted == nil { counts[entry.reason, default: 0] += 1 }
      return counts.sorted { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }
        .map { ($0.key, $0.value) }
    }

    /// Whether it equals another, except for the times of the last requests.
    func saysNothingNew(after earlier: MissingList) -> Bool {
      count == earlier.count
        && indices.allSatisfy { place in
          var entry = self[place]
          let other = earlier[place]
          entry.lastTried = other.lastTried
          return entry == other
        }
    }

    /// Whether both say the same.
    public static func == (left: MissingList, right: MissingList) -> Bool {
      left.elementsEqual(right)
    }
  }
}

extension [BlobLedger.Missing] {
  /// Records that blobs were lost.
  package mutating func note(lost: [(cid: CID, size: Int?)], areReferenced: Bool) {
    let places = Dictionary(zip(map(\.cid), indices), uniquingKeysWith: { first, _ in first })
    for (cid, size) in lost {
      if let place = places[cid] {
        self[place].reason = .lost
      } else {
        var entry = BlobLedger.Missing(cid: cid, reason: .lost, size: size)
        entry.isReferenced = areReferenced
        append(entry)
      }
    }
  }
}
