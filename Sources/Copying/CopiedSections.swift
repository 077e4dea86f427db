internal import Archive

/// What has become of the sections of an archive that is being copied: eight bytes a section.
struct CopiedSections {
  /// For each section twice its new ordinal, and one more if its links have been followed.
  private var entries: [UInt64]
  /// The same for sections whose ordinals are lost with damage before them.
  private var further: [UInt64: UInt64] = [:]
  /// Sections that are made again: manifests, and pages of their orders.
  private var replaced: Set<UInt64> = []
  private var count = 0

  private static let untouched = UInt64.max
  private static let lost = UInt64.max - 1

  /// Nothing has been copied of an archive.
  init(of reader: ArchiveReader) {
    entries = [UInt64](repeating: Self.untouched, count: Int(reader.sectionLimit))
  }

  /// How many ordinals are known before those that are lost with damage.
  var capacity: Int { entries.count }

  private func entry(_ ordinal: UInt64) -> UInt64 {
    ordinal < UInt64(entries.count) ? entries[Int(ordinal)] : further[ordinal] ?? Self.untouched
  }

  private mutating func set(_ ordinal: UInt64, to entry: UInt64) {
    if ordinal < UInt64(entries.count) {
      entries[Int(ordinal)] = entry
    } else {
      further[ordinal] = entry
    }
  }

  /// The ordinal of a section in the new archive; nil if it is not there.
  subscript(ordinal: UInt64) -> UInt64? {
    let entry = entry(ordinal)
    return entry >= Self.lost ? nil : entry >> 1
  }

  /// Whether a section has been neither copied nor found to be lost.
  func isUntouched(_ ordinal: UInt64) -> Bool { entry(ordinal) == Self.untouched }

  /// Notes the ordinal of a section in the new archive.
  mutating func note(_ ordinal: UInt64, as new: UInt64) {
    if self[ordinal] == nil { count += 1 }
    set(ordinal, to: new << 1)
  }

  /// Notes that a section cannot be read.
  mutating func noteLost(_ ordinal: UInt64) { set(ordinal, to: Self.lost) }

  /// Notes that a section is made again.
  mutating func noteReplaced(_ ordinal: UInt64) { replaced.insert(ordinal) }

  /// Whether a section is made again.
  func isReplaced(_ ordinal: UInt64) -> Bool { replaced.contains(ordinal) }

  /// How many sections are neither in the new archive nor made again.
  var leftOutCount: Int { entries.count - count - replaced.count { self[$0] == nil } }

  /// Notes that the links of a section that was copied are followed; answers whether that is new.
  mutating func follow(_ ordinal: UInt64) -> Bool {
    let entry = entry(ordinal)
    guard entry < Self.lost, entry & 1 == 0 else { return false }
    set(ordinal, to: entry | 1)
    return true
  }
}
