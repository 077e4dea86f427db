/// Which sections of an archive have been copied, and under which numbers: eight bytes a section.
///
/// By it a section that many snapshots share is copied once.
struct CopiedSections {
  /// For each section twice its new number, and one more if its links have been followed.
  private var entries: [UInt64]

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
  mutating func note(_ ordinal: UInt64, as new: UInt64) { entries[Int(ordinal)] = new << 1 }

  /// Notes that what a section links to is going to be copied; answers whether that is new.
  mutating func follow(_ ordinal: UInt64) -> Bool {
    let entry = entries[Int(ordinal)]
    guard entry & 1 == 0 else { return false }
    entries[Int(ordinal)] = entry | 1
    return true
  }
}
