internal import IPLD

/// An index read from the frames, in memory, for a file whose own is damaged or missing.
///
/// Sixteen bytes a section. Behind damage, the number of sections that came before is not always known; those have
/// provisional ordinals from ``lostBase`` on, which are never told to anybody.
package struct RebuiltIndex: Sendable {
  /// Where ordinals begin that are only provisional.
  package static let lostBase: UInt64 = 1 << 62

  package struct Entry: Sendable {
    package let key: UInt64
    package var ordinal: UInt64
  }

  /// By key, then ordinal.
  package let entries: [Entry]
  /// By first ordinal, then offset.
  package let frames: [FrameEntry]
  /// How many sections were found.
  package var count: Int { entries.count }

  package init(entries: [Entry], frames: [FrameEntry]) {
    self.entries = entries.sorted { ($0.key, $0.ordinal) < ($1.key, $1.ordinal) }
    self.frames = frames.sorted {
      ($0.firstOrdinal, $0.offset) < ($1.firstOrdinal, $1.offset)
    }
  }

  /// The ordinals of the sections with this key.
  package func candidates(_ key: SectionKey) -> [UInt64] {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = low + (high - low) / 2
      if entries[middle].key < key.prefix { low = middle + 1 } else { high = middle }
    }
    return entries[low...].prefix { $0.key == key.prefix }.map(\.ordinal)
  }

  /// The number, in ``frames``, of the frame in which the section `ordinal` begins.
  package func frameIndex(of ordinal: UInt64) -> Int? {
    var (low, high) = (0, frames.count)
    while low < high {
      let middle = low + (high - low) / 2
      if frames[middle].firstOrdinal < ordinal { low = middle + 1 } else { high = middle }
    }
    if low < frames.count, frames[low].firstOrdinal == ordinal { return low }
    return low == 0 ? nil : low - 1
  }
}
