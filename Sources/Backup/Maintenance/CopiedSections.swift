/// Which sections of an archive have been copied, under which numbers, and what has been done about them: eight bytes a section.
///
/// By it a section that many snapshots share is copied and looked into once.
struct CopiedSections {
  /// What has been done about a section.
  struct Marks: OptionSet {
    let rawValue: UInt64
    /// The blobs that it refers to are wanted.
    static let scanned = Marks(rawValue: 1)
    /// What it links to is wanted.
    static let followed = Marks(rawValue: 2)
  }

  /// For each section its new number and its marks.
  private var entries: [UInt64]

  /// None of so many sections.
  ///
  /// - Parameter count: how many there are; an index in the file has eight bytes for each of them, so it is no more than the file can hold.
  init(count: UInt64) { entries = [UInt64](repeating: .max, count: Int(count)) }

  /// The number that a section has in the new archive; nil if it is not there yet.
  subscript(ordinal: UInt64) -> UInt64? {
    let entry = entries[Int(ordinal)]
    return entry == .max ? nil : entry >> 2
  }

  /// Whether a section is there and has been marked so.
  func has(_ marks: Marks, _ ordinal: UInt64) -> Bool {
    let entry = entries[Int(ordinal)]
    return entry != .max && entry & marks.rawValue == marks.rawValue
  }

  /// Notes that a section has this number in the new archive.
  mutating func note(_ ordinal: UInt64, as new: UInt64, _ marks: Marks) {
    let entry = entries[Int(ordinal)]
    let earlier = entry == .max ? 0 : entry & 3
    entries[Int(ordinal)] = new << 2 | earlier | marks.rawValue
  }
}
