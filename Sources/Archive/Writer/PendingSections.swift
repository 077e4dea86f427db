/// The sections appended since the last footer, to be found by key: what the index segment will be
/// made of.
///
/// At most 16 bytes a section: eight for the key, and a slot of four in a table that is seven
/// eighths full at most. What the table finds has an equal key; whether it is the same CID, the
/// caller reads in the section.
struct PendingSections {
  /// The ordinal of the first of them.
  let base: UInt64
  /// Their keys, in order of ordinals.
  private(set) var keys = KeyList()

  /// One more than the number of a section, or 0.
  private var slots = [UInt32](repeating: 0, count: 64)
  /// Scatters keys over the slots.
  ///
  /// Keys are digests and cannot be chosen, but many can be tried until enough of them begin
  /// alike. A secret factor makes that pointless.
  private let factor = UInt64.random(in: 0...UInt64.max) | 1

  init(base: UInt64) {
    self.base = base
  }

  /// The ordinal of the next section.
  var nextOrdinal: UInt64 { base + UInt64(keys.count) }

  /// The ordinals of the sections with this key, the oldest first.
  func ordinals(_ key: UInt64) -> [UInt64] {
    var found: [UInt64] = []
    var slot = home(key)
    while slots[slot] != 0 {
      let index = Int(slots[slot] - 1)
      if keys[index] == key { found.append(base + UInt64(index)) }
      slot = slot + 1 == slots.count ? 0 : slot + 1
    }
    return found
  }

  /// Adds the next section.
  mutating func append(_ key: UInt64) {
    if (keys.count + 1) * 8 > slots.count * 7 { grow() }
    insert(key, keys.count)
    keys.append(key)
  }

  private func home(_ prefix: UInt64) -> Int {
    Int(truncatingIfNeeded: (prefix &* factor).multipliedFullWidth(by: UInt64(slots.count)).high)
  }

  private mutating func insert(_ prefix: UInt64, _ index: Int) {
    var slot = home(prefix)
    while slots[slot] != 0 { slot = slot + 1 == slots.count ? 0 : slot + 1 }
    slots[slot] = UInt32(index + 1)
  }

  private mutating func grow() {
    slots = [UInt32](repeating: 0, count: slots.count + slots.count / 2)
    for index in 0..<keys.count { insert(keys[index], index) }
  }
}
