/// Where the blocks of a CAR lie whose CIDs are as AT Protocol has them, in twelve bytes a block.
///
/// A ``BlockTable`` knows more of a block, and takes three times as much for each. This is for a
/// CAR of which most may be of no use.
/// Blocks under CIDs of other forms are not in it.
///
/// Invariants:
/// 1. There is an empty slot for every two in use, and the table never grows.
/// 2. A slot in use has the place of a section, whose CID is of version 1 with a codec of one byte
///    and SHA-256, and some bits of its
///    hash. No two have the same CID: of repeated blocks the first counts.
package struct SectionIndex: Sendable {
  /// How many bits of a slot are of the hash; the others are one more than the place of a section.
  private static let tagBits: UInt64 = 20
  /// How many bytes a file may have.
  package static let maximumLength = 1 << (64 - Int(tagBits)) - 1
  /// How far it goes between two calls of `progress`.
  private static let step = 32 << 20

  private var slots: [UInt64]
  private let hash = CIDHash()
  /// How many sections the CAR has, of every kind.
  package private(set) var sectionCount = 0
  /// Whether there is a raw block among them.
  package private(set) var hasRaw = false

  /// Reads a CAR twice, once to count the sections.
  ///
  /// - Parameters:
  ///   - bytes: Those of a file with the CAR.
  ///   - header: Its header.
  ///   - payload: Its place in the bytes, header included.
  ///   - progress: Is called now and then, when nothing before the place is needed for now.
  /// - Throws: ``CARError`` at the first section that is malformed.
  package init(
    _ bytes: Span<UInt8>, header: CARHeader, payload: Range<Int>, progress: () -> Void = {}
  ) throws(CARError) {
    precondition(bytes.count <= Self.maximumLength)
    var count = 0
    var reported = 0
    var cursor = CARCursor(header: header, payload: payload)
    while let (section, cid) = try cursor.next(in: bytes) {
      sectionCount += 1
      if CIDHash.commonDigest(cid) != nil { count += 1 }
      if section.end - reported >= Self.step {
        reported = section.end
        progress()
      }
    }
    slots = [UInt64](repeating: 0, count: count + count / 2 + 1)
    cursor = CARCursor(header: header, payload: payload)
    reported = 0
    while let (section, cid) = try cursor.next(in: bytes) {
      if CIDHash.commonDigest(cid) != nil { insert(section, cid, bytes) }
      if section.end - reported >= Self.step {
        reported = section.end
        progress()
      }
    }
  }

  /// How many slots there are.
  package var slotCount: Int { slots.count }

  private mutating func insert(_ section: CARSection, _ cid: CID, _ bytes: Span<UInt8>) {
    let (found, tag, slot) = find(cid, in: bytes)
    guard !found else { return }
    slots[slot] = UInt64(section.start + 1) << Self.tagBits | tag
    if cid.codec == .raw { hasRaw = true }
  }

  /// The slot of the block that `cid` names, or nil.
  package func slot(of cid: CID, in bytes: Span<UInt8>) -> Int? {
    guard CIDHash.commonDigest(cid) != nil else { return nil }
    let (found, _, slot) = find(cid, in: bytes)
    return found ? slot : nil
  }

  /// The section in a slot in use.
  package func section(_ slot: Int, in bytes: Span<UInt8>) -> CARSection {
    let start = Int(slots[slot] >> Self.tagBits) - 1
    var at = start
    guard case .value(let length) = Varint.read(bytes, at: &at) else {
      preconditionFailure("the index is for other bytes")
    }
    // All CIDs that are in it have this length.
    return CARSection(start: start, cidRange: at..<at + 36, bodyRange: at + 36..<at + Int(length))
  }

  /// The slot of a CID, or the empty one where it belongs.
  private func find(_ cid: CID, in bytes: Span<UInt8>) -> (found: Bool, tag: UInt64, slot: Int) {
    let hash = hash(cid)
    let tag = hash & (1 << Self.tagBits - 1)
    var slot = Int(hash.multipliedFullWidth(by: UInt64(slots.count)).high)
    while slots[slot] != 0 {
      if slots[slot] & (1 << Self.tagBits - 1) == tag, matches(slot, cid, bytes) {
        return (true, tag, slot)
      }
      slot = slot + 1 == slots.count ? 0 : slot + 1
    }
    return (false, tag, slot)
  }

  private func matches(_ slot: Int, _ cid: CID, _ bytes: Span<UInt8>) -> Bool {
    let place = section(slot, in: bytes).cidRange.lowerBound
    return bytes[place + 1] == UInt8(cid.codec.rawValue)
      && cid.multihash.sha256 == SHA256Digest(bytes, at: place + 4)
  }
}
