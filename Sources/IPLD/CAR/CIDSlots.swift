/// The heart of every table of CIDs: a hash table with open addressing that holds no CID, only a
/// number for each.
///
/// Where the CID with a number is, the table's owner knows, and tells when it is asked. Eight bytes
/// a slot:
///
/// ```
/// bits 63 … 20   one more than the number; 0 in an empty slot
/// bits 19 … 4    bits of the CID's hash, so that few other CIDs are looked at
/// bits 3 … 0     marks, for the owner to use
/// ```
///
/// Invariants:
/// 1. More than a third of the slots are empty.
/// 2. A CID that is in the table lies at or after the slot that its hash says, with no empty slot
///    in between.
/// 3. No two numbers are of the same CID.
package struct CIDSlots: Sendable {
  private static let numberShift: UInt64 = 20
  private static let tagMask: UInt64 = 0xf_fff0
  private static let markMask: UInt64 = 0xf

  /// The highest number.
  package static let maximumNumber = 1 << (64 - Int(numberShift)) - 2

  private var slots: [UInt64]
  /// How many are in use.
  package private(set) var count = 0
  /// The seed of hashes.
  ///
  /// It makes positions unpredictable: an attacker chooses the digests of blocks, and nothing says
  /// that the blocks hash to them.
  private let seed = (
    UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max),
    UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max)
  )
  /// What ``fetch(_:)`` has seen, lest it be taken for of no use.
  private var fetchedCount = 0

  /// An empty table.
  ///
  /// - Parameter expectedCount: how many CIDs there may be, for which room is made.
  package init(expecting expectedCount: Int = 0) {
    slots = [UInt64](repeating: 0, count: Self.slotCount(for: expectedCount))
  }

  private static func slotCount(for count: Int) -> Int { max(1024, count + count / 2 + 1) }

  /// Makes room for this many CIDs; then the slots of all are others.
  package mutating func reserve(_ expectedCount: Int, cid: (Int) -> CID) {
    let slotCount = Self.slotCount(for: expectedCount)
    if slotCount > slots.count { grow(to: slotCount, cid) }
  }

  /// How many slots there are, so that something may be kept of each.
  package var slotCount: Int { slots.count }

  /// The hash of a CID, with which it is looked for; all bits are of use.
  ///
  /// A common CID is all but its digest. Other CIDs may share a digest, so they are hashed whole,
  /// lest they should all want the same slot.
  @inline(__always)
  package func hash(of cid: CID) -> UInt64 {
    hash(CommonCID(cid)?.digest ?? SHA256.digest(of: cid.bytes.span))
  }

  /// The hash of a common CID with this digest.
  @inline(__always)
  private func hash(_ digest: SHA256Digest) -> UInt64 {
    let words = digest.words
    // Every bit of the digest, with a bit of the seed on it, goes through two products before it
    // counts.
    let first = Self.fold(words.0 ^ seed.0, words.1 ^ seed.1)
    let second = Self.fold(words.2 ^ seed.2, words.3 ^ seed.3)
    return Self.fold(first ^ seed.2, second ^ seed.1)
  }

  /// Both halves of a product.
  @inline(__always)
  private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }

  /// Adds the CID with this hash and number, unless it is there.
  ///
  /// - Parameters:
  ///   - hash: its hash.
  ///   - number: its number, at most ``maximumNumber``.
  ///   - isSame: whether the CID with a number is this one.
  ///   - cid: the CID with a number, for a table that has to grow; then the slots of all are
  ///     others.
  /// - Returns: its slot, and whether it is new.
  @inline(__always)
  package mutating func insert(
    _ hash: UInt64, _ number: Int, isSame: (Int) -> Bool, cid: (Int) -> CID
  ) -> (slot: Int, isNew: Bool) {
    if (count + 1) * 3 > slots.count * 2 { grow(to: slots.count * 2, cid) }
    let (slot, isFound) = find(hash, isSame)
    guard !isFound else { return (slot, false) }
    precondition(number >= 0 && number <= Self.maximumNumber)
    slots[slot] = UInt64(number + 1) << Self.numberShift | hash & Self.tagMask
    count += 1
    return (slot, true)
  }

  /// The slot of the CID with this hash; nil if it is not there.
  @inline(__always)
  package func slot(_ hash: UInt64, isSame: (Int) -> Bool) -> Int? {
    let (slot, isFound) = find(hash, isSame)
    return isFound ? slot : nil
  }

  /// Finds the slots of these CIDs.
  ///
  /// Slots lie all over memory, and so do the CIDs that they stand for. Those of a few dozen are
  /// looked at first, so that they come together.
  ///
  /// - Parameters:
  ///   - cids: which.
  ///   - isSame: whether the CID with a number is this one.
  ///   - each: called with the slot of each, in order; nil for one that is not there.
  @inline(__always)
  package func findAll(
    _ cids: [CommonCID], isSame: (CommonCID, Int) -> Bool, each: (Int?) -> Void
  ) {
    var looks = InlineArray<32, (hash: UInt64, content: UInt64)>(repeating: (0, 0))
    for first in stride(from: 0, to: cids.count, by: looks.count) {
      let batch = first..<min(first + looks.count, cids.count)
      for index in batch {
        let hash = hash(cids[index].digest)
        looks[index - first] = (hash, slots[position(hash)])
      }
      for index in batch {
        let (hash, content) = looks[index - first]
        if content & Self.tagMask == hash & Self.tagMask, content != 0,
          isSame(cids[index], Int(content >> Self.numberShift) - 1)
        {
          each(position(hash))
        } else {
          each(slot(hash) { isSame(cids[index], $0) })
        }
      }
    }
  }

  /// The number in a slot that is in use.
  @inline(__always)
  package func number(_ slot: Int) -> Int { Int(slots[slot] >> Self.numberShift) - 1 }

  /// Whether a slot is in use.
  @inline(__always)
  package func isUsed(_ slot: Int) -> Bool { slots[slot] != 0 }

  /// The marks on a slot.
  @inline(__always)
  package func marks(_ slot: Int) -> UInt8 { UInt8(slots[slot] & Self.markMask) }

  /// Adds marks to a slot in use.
  @inline(__always)
  package mutating func mark(_ slot: Int, _ marks: UInt8) {
    slots[slot] |= UInt64(marks) & Self.markMask
  }

  /// Prefetches the memory of the slots that will be looked at: they lie all over it, and come
  /// together this way.
  @inline(__always)
  package mutating func fetch(_ hashes: [UInt64]) {
    for hash in hashes where slots[position(hash)] != 0 { fetchedCount &+= 1 }
  }

  /// The slot where the search for a hash begins.
  @inline(__always)
  private func position(_ hash: UInt64) -> Int {
    Int(hash.multipliedFullWidth(by: UInt64(slots.count)).high)
  }

  /// The slot of a CID, or the empty one where it belongs.
  @inline(__always)
  private func find(_ hash: UInt64, _ isSame: (Int) -> Bool) -> (slot: Int, isFound: Bool) {
    let tag = hash & Self.tagMask
    var slot = position(hash)
    while slots[slot] != 0 {
      if slots[slot] & Self.tagMask == tag, isSame(number(slot)) { return (slot, true) }
      slot = slot + 1 == slots.count ? 0 : slot + 1
    }
    return (slot, false)
  }

  private mutating func grow(to slotCount: Int, _ cid: (Int) -> CID) {
    let old = slots
    slots = [UInt64](repeating: 0, count: slotCount)
    for content in old where content != 0 {
      // Half of the hash is no longer known.
      var slot = position(hash(of: cid(Int(content >> Self.numberShift) - 1)))
      while slots[slot] != 0 { slot = slot + 1 == slots.count ? 0 : slot + 1 }
      slots[slot] = content
    }
  }
}
