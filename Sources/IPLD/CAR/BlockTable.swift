/// Which blocks a CAR holds and where: a compact hash table from CIDs to places in the CAR's bytes.
///
/// This is all that grows with a repository: 16 bytes for each distinct block and 12 to 24 for its slot. The CIDs themselves stay
/// where they are, in the CAR, which the caller passes to every call.
///
/// Invariants:
/// 1. `slots.count` is a power of two, and more than a third of the slots are empty.
/// 2. A slot in use holds an entry's index and the hash of its CID, and the entry's probe sequence passes it.
/// 3. No two entries have the same binary CID.
public struct BlockTable: Sendable {
  private struct Entry {
    var bodyOffset: UInt64
    var bodyLength: UInt32
    var cidLength: UInt16
  }

  /// With the hash at hand, a slot of another CID is passed by without a look at the CAR, and the table grows without one.
  private struct Slot {
    static let empty = Slot(number: 0, hash: 0)

    /// One more than the index of the entry; 0 in an empty slot.
    let number: UInt32
    let hash: UInt32
  }

  private var entries: [Entry] = []
  private var slots: [Slot]
  private let hash = CIDHash()

  /// A table without blocks.
  ///
  /// - Parameter expectedCount: how many there may be, for which room is made.
  public init(expecting expectedCount: Int = 0) {
    entries.reserveCapacity(expectedCount)
    var count = 1024
    while expectedCount * 3 > count * 2 { count *= 2 }
    slots = [Slot](repeating: .empty, count: count)
  }

  /// How many distinct blocks there are.
  public var count: Int { entries.count }

  /// Adds a block; answers its index, and whether it is the first of its CID.
  @inline(__always)
  public mutating func insert(_ section: CARSection, _ cid: CID, in bytes: Span<UInt8>)
    -> (index: Int, isNew: Bool)
  {
    insert(section, cid, UInt32(truncatingIfNeeded: hash(cid)), in: bytes)
  }

  /// Adds blocks; answers of each whether it is the first of its CID.
  ///
  /// Slots lie all over memory. All are asked for first, so that they come together.
  package mutating func insert(
    _ sections: [CARSection], _ cids: [CID], in bytes: Span<UInt8>
  ) -> [Bool] {
    var hashes: [UInt32] = []
    hashes.reserveCapacity(cids.count)
    for index in cids.indices { hashes.append(UInt32(truncatingIfNeeded: hash(cids[index]))) }
    let inUse = hashes.count { slots[Int($0) & (slots.count - 1)].number != 0 }
    var isNew: [Bool] = []
    isNew.reserveCapacity(max(cids.count, inUse))
    for index in cids.indices {
      isNew.append(insert(sections[index], cids[index], hashes[index], in: bytes).isNew)
    }
    return isNew
  }

  @inline(__always)
  private mutating func insert(
    _ section: CARSection, _ cid: CID, _ hash: UInt32, in bytes: Span<UInt8>
  ) -> (index: Int, isNew: Bool) {
    if (entries.count + 1) * 3 > slots.count * 2 { grow() }
    var position = Int(hash) & (slots.count - 1)
    while slots[position].number != 0 {
      let slot = slots[position]
      let index = Int(slot.number - 1)
      if slot.hash == hash, matches(index, cid, bytes) { return (index, false) }
      position = (position + 1) & (slots.count - 1)
    }
    entries.append(
      Entry(
        bodyOffset: UInt64(section.bodyRange.lowerBound),
        bodyLength: UInt32(section.bodyRange.count), cidLength: UInt16(section.cidRange.count)))
    slots[position] = Slot(number: UInt32(entries.count), hash: hash)
    return (entries.count - 1, true)
  }

  /// The index of the block that `cid` names, or nil.
  @inline(__always)
  public func index(of cid: CID, in bytes: Span<UInt8>) -> Int? {
    let hash = UInt32(truncatingIfNeeded: hash(cid))
    var position = Int(hash) & (slots.count - 1)
    while slots[position].number != 0 {
      let slot = slots[position]
      let index = Int(slot.number - 1)
      if slot.hash == hash, matches(index, cid, bytes) { return index }
      position = (position + 1) & (slots.count - 1)
    }
    return nil
  }

  /// Where the block's bytes lie.
  @inline(__always)
  public func body(_ index: Int) -> Range<Int> {
    let entry = entries[index]
    let offset = Int(entry.bodyOffset)
    return offset..<offset + Int(entry.bodyLength)
  }

  /// The block's CID.
  public func cid(_ index: Int, in bytes: Span<UInt8>) -> CID {
    let entry = entries[index]
    var offset = Int(entry.bodyOffset) - Int(entry.cidLength)
    do throws(CIDError) {
      return try CID(bytes, at: &offset)
    } catch {
      preconditionFailure("the table is for other bytes")
    }
  }

  @inline(__always)
  private func matches(_ index: Int, _ cid: CID, _ bytes: Span<UInt8>) -> Bool {
    let entry = entries[index]
    let body = Int(entry.bodyOffset)
    if entry.cidLength == 36, let digest = CIDHash.commonDigest(cid) {
      // Another function has digests of 32 bytes too, and what it names may be bytes that nobody can verify.
      return SHA256Digest(bytes, at: body - 32) == digest
        && bytes[body - 34] == UInt8(HashFunction.sha256.rawValue)
        && bytes[body - 35] == UInt8(cid.codec.rawValue)
    }
    return self.cid(index, in: bytes) == cid
  }

  private mutating func grow() {
    let old = slots
    slots = [Slot](repeating: .empty, count: old.count * 2)
    for slot in old where slot.number != 0 {
      var position = Int(slot.hash) & (slots.count - 1)
      while slots[position].number != 0 { position = (position + 1) & (slots.count - 1) }
      slots[position] = slot
    }
  }
}
