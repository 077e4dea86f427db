/// Which sections of an archive have been copied, and under which numbers: eight bytes a section.
///
/// By it a section that many snapshots share is copied once.
struct CopiedSections {
  /// For each section twice its new number, and one more if its links have been followed.
  private var entries: [UInt64]
  /// Sections in whose place there are others now: manifests, and pages of their orders.
  private var replaced: Set<UInt64> = []
  private var count = 0

  /// None of so many sections.
  ///
  /// - Parameter count: how many there are; an index in the file has eight bytes for each of them, so it is no more than the file can hold.
  init(count: UInt64) { entries = [UInt64](repeating: .max, count: Int(count)) }

  /// The number that a section has in the new archive; nil if it is not there yet.
  subscript(ordinal: UInt64) -> UInt64? {
    let entry = entries[Int(ordinal)]
    return entry == .max ? nil : entry >> 1
  }

  /// Notes that a section has this number in the new archive.
  mutating func note(_ ordinal: UInt64, as new: UInt64) {
    if entries[Int(ordinal)] == .max { count += 1 }
    entries[Int(ordinal)] = new << 1
  }

  /// Notes that in the place of a section there is another in the new archive.
  mutating func noteReplaced(_ ordinal: UInt64) { replaced.insert(ordinal) }

  /// How many sections are not in the new archive, nor another in their place.
  var leftOutCount: Int { entries.count - count - replaced.count { self[$0] == nil } }

  /// Notes that what a section links to is going to be copied; answers whether that is new.
  mutating func follow(_ ordinal: UInt64) -> Bool {
    let entry = entries[Int(ordinal)]
    guard entry & 1 == 0 else { return false }
    entries[Int(ordinal)] = entry | 1
    return true
  }
}
