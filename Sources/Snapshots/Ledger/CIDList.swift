package import IPLD

/// Many CIDs in little memory: 33 bytes each, where a `CID` takes twice as many.
package struct CIDList: Sendable, RandomAccessCollection, ExpressibleByArrayLiteral {
  private var digests: [SHA256Digest] = []
  /// The codec of each; ``other`` for one that does not fit.
  private var codecs: [UInt8] = []
  /// CIDs of another form than version 1 with SHA-256 and a short codec, by their places.
  private var others: [Int: CID] = [:]

  private static let other: UInt8 = 0xff

  /// A list of these.
  package init(_ cids: some Sequence<CID> = EmptyCollection()) { for cid in cids { append(cid) } }

  /// A list of these.
  package init(arrayLiteral elements: CID...) { self.init(elements) }

  /// The place of the first.
  package var startIndex: Int { 0 }
  /// The place after the last.
  package var endIndex: Int { codecs.count }

  /// The CID in a place.
  package subscript(place: Int) -> CID {
    guard codecs[place] != Self.other, others.isEmpty || others[place] == nil else {
      return others[place] ?? CID(codec: .raw, digest: digests[place])
    }
    return CID(codec: Codec(rawValue: UInt64(codecs[place])), digest: digests[place])
  }

  /// Adds one at the end.
  package mutating func append(_ cid: CID) {
    if cid.version == .v1, let digest = cid.multihash.sha256,
      cid.codec.rawValue < UInt64(Self.other)
    {
      digests.append(digest)
      codecs.append(UInt8(cid.codec.rawValue))
    } else {
      others[codecs.count] = cid
      digests.append(SHA256Digest(words: (0, 0, 0, 0)))
      codecs.append(Self.other)
    }
  }

  /// Makes room for this many.
  package mutating func reserveCapacity(_ count: Int) {
    digests.reserveCapacity(count)
    codecs.reserveCapacity(count)
  }
}

/// CIDs, each once, and where in the list each is.
package struct IndexedCIDs: Sendable {
  /// The CIDs in the order in which they came.
  private(set) var list: CIDList = []
  private var slots = CIDSlots()

  /// No CIDs.
  package init() {}

  /// The CIDs of a list, the first of equal ones.
  package init(_ cids: some Collection<CID>) {
    list.reserveCapacity(cids.count)
    for cid in cids { insert(cid) }
  }

  /// Where a CID is; nil if it is missing.
  package func place(of cid: CID) -> Int? {
    slots.slot(slots.hash(of: cid)) { list[$0] == cid }.map(slots.number)
  }

  /// Adds a CID, and returns whether it was not there before.
  @discardableResult
  package mutating func insert(_ cid: CID) -> Bool {
    let isNew = enter(cid)
    if isNew { list.append(cid) }
    return isNew
  }

  private mutating func enter(_ cid: CID) -> Bool {
    let list = list
    return slots.insert(slots.hash(of: cid), list.count) {
      list[$0] == cid
    } cid: {
      list[$0]
    }.isNew
  }
}
