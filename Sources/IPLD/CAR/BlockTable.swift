/// Which blocks a CAR holds and where: a compact hash table from CIDs to places in the CAR's bytes.
///
/// This is all that grows with a repository: twelve bytes for each distinct block, up to twice that
/// after it has grown. The CIDs themselves stay where they are, in the CAR, which the caller passes
/// to every call.
///
/// A block's *place* in the table stays the same until another is inserted.
package struct BlockTable: Sendable {
  /// The number of a CID is where its section begins.
  private var slots: CIDSlots

  /// The longest file whose blocks can be in a table.
  package static let maximumLength = CIDSlots.maximumNumber

  /// A table without blocks.
  ///
  /// - Parameter expectedCount: how many there may be, for which room is made.
  package init(expecting expectedCount: Int = 0) { slots = CIDSlots(expecting: expectedCount) }

  /// Makes room for this many blocks; the places of all are others then.
  package mutating func reserve(_ expectedCount: Int, in bytes: Span<UInt8>) {
    slots.reserve(expectedCount) { CARSection.cid(at: $0, in: bytes) }
  }

  /// How many distinct blocks there are.
  package var count: Int { slots.count }

  /// No place is this number or a higher one.
  package var placeCount: Int { slots.slotCount }

  /// Adds a block; returns its place, and whether it is the first of its CID.
  @inline(__always)
  @discardableResult
  package mutating func insert(_ section: CARSection, _ cid: CID, in bytes: Span<UInt8>)
    -> (place: Int, isNew: Bool)
  {
    insert(section, cid, slots.hash(of: cid), in: bytes)
  }

  /// Adds blocks, and marks those that are new.
  ///
  /// Slots lie all over memory. All are requested first, so that they come together. `marks`
  /// answers the marks of the block with an index, which is the first of its CID.
  package mutating func insert(
    _ sections: [CARSection], _ cids: [CID], in bytes: Span<UInt8>, marks: (Int) -> UInt8
  ) {
    var hashes: [UInt64] = []
    hashes.reserveCapacity(cids.count)
    for index in cids.indices { hashes.append(slots.hash(of: cids[index])) }
    slots.fetch(hashes)
    for index in cids.indices {
      let (place, isNew) = insert(sections[index], cids[index], hashes[index], in: bytes)
      if isNew { slots.mark(place, marks(index)) }
    }
  }

  @inline(__always)
  private mutating func insert(
    _ section: CARSection, _ cid: CID, _ hash: UInt64, in bytes: Span<UInt8>
  ) -> (place: Int, isNew: Bool) {
    let (slot, isNew) = slots.insert(hash, section.start) {
      CARSection.has(cid, at: $0, in: bytes)
    } cid: {
      CARSection.cid(at: $0, in: bytes)
    }
    return (slot, isNew)
  }

  /// The place of the block that `cid` names, or nil.
  @inline(__always)
  package func place(of cid: CID, in bytes: Span<UInt8>) -> Int? {
    slots.slot(slots.hash(of: cid)) { CARSection.has(cid, at: $0, in: bytes) }
  }

  /// Appends the place of each block that these name, or nil; in less time than one after the
  /// other.
  package func appendPlaces(of cids: [CommonCID], to places: inout [Int?], in bytes: Span<UInt8>) {
    slots.findAll(cids) {
      CARSection.has($0, at: $1, in: bytes)
    } each: {
      places.append($0)
    }
  }

  /// Where the section in a place begins.
  @inline(__always)
  package func start(_ place: Int) -> Int { slots.number(place) }

  /// The section in a place.
  package func section(_ place: Int, in bytes: Span<UInt8>) -> CARSection {
    CARSection.read(at: start(place), in: bytes).section
  }

  /// Where the block's bytes lie.
  @inline(__always)
  package func body(_ place: Int, in bytes: Span<UInt8>) -> Range<Int> {
    CARSection.body(at: start(place), in: bytes)
  }

  /// The block's CID.
  package func cid(_ place: Int, in bytes: Span<UInt8>) -> CID {
    CARSection.cid(at: start(place), in: bytes)
  }

  /// Whether there is a block in a place.
  package func isUsed(_ place: Int) -> Bool { slots.isUsed(place) }

  /// The marks on a block: four bits that the owner of the table has given it.
  @inline(__always)
  package func marks(_ place: Int) -> UInt8 { slots.marks(place) }

  /// Adds marks to a block.
  @inline(__always)
  package mutating func mark(_ place: Int, _ marks: UInt8) { slots.mark(place, marks) }
}
