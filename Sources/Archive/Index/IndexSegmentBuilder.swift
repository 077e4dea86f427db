internal import IPLD

/// Makes the bytes of an index segment from the keys of its sections, in order of ordinals, and its
/// frame table.
///
/// The order of entries is fixed by the format, so the same sections give the same bytes: that is
/// what makes the index a cache that can be thrown away.
package struct IndexSegmentBuilder {
  let form: IndexForm
  let base: UInt64
  let frames: ArraySlice<FrameEntry>
  let layout: SegmentLayout
  /// How many leading bits tell the groups apart in which the entries were sorted.
  private let groupBits: Int
  /// How many entries are in this group or before it.
  private let ends: [UInt32]
  /// The bits of the key behind those that tell the group, above the relative ordinal; sorted.
  private let sorted: [UInt64]

  /// How many sections there are.
  package var count: Int { sorted.count }

  /// How long the segment's frame is.
  package var length: Int { layout.length }

  /// Sorts the entries.
  ///
  /// - Parameters:
  ///   - form: How the entries are written.
  ///   - base: The first ordinal.
  ///   - keys: The key prefix of each section from there on.
  ///   - range: The numbers of the keys that count; by default all.
  ///   - frames: The data frames they lie in.
  package init(
    _ form: IndexForm, base: UInt64, keys: KeyList, range: Range<Int>? = nil,
    frames: ArraySlice<FrameEntry>
  ) {
    let range = range ?? 0..<keys.count
    let count = range.count
    let layout = SegmentLayout(
      form, base: base, count: max(1, count), frameCount: frames.count)
    // Some 32 entries each.
    let bits = max(0, layout.ordinalBits - 5)
    var ends = [UInt32](repeating: 0, count: 1 << bits)
    for index in range { ends[SectionKey.leading(keys[index], bits: bits)] += 1 }
    var total: UInt32 = 0
    for group in ends.indices {
      total += ends[group]
      ends[group] = total
    }
    // Every entry goes straight into its group, from the group's end down; what is left is to sort
    // some 32 numbers each.
    var sorted = [UInt64](repeating: 0, count: count)
    var places = ends
    let restBits = layout.keyBits - bits
    for index in range {
      let ordinal = UInt64(index - range.lowerBound)
      let key = form.kept(keys[index], of: base + ordinal)
      let group = SectionKey.leading(key, bits: bits)
      places[group] -= 1
      let rest = (key << UInt64(bits)) >> UInt64(64 - restBits)
      sorted[Int(places[group])] = rest << UInt64(layout.ordinalBits) | ordinal
    }
    for group in ends.indices {
      let range = Int(places[group])..<Int(ends[group])
      if range.count > 1 { sorted[range].sort() }
    }
    self.form = form
    self.base = base
    self.frames = frames
    self.layout = layout
    groupBits = bits
    self.ends = ends
    self.sorted = sorted
  }

  /// All entries, in the order of their keys.
  var entries: Entries { Entries(self) }

  struct Entries {
    private let builder: IndexSegmentBuilder
    private var index = 0
    private var group = 0

    fileprivate init(_ builder: IndexSegmentBuilder) { self.builder = builder }

    /// The next entry; nil behind the last.
    @inline(__always)
    mutating func next() -> IndexEntry? {
      guard index < builder.sorted.count else { return nil }
      while builder.ends[group] <= UInt32(truncatingIfNeeded: index) { group += 1 }
      let layout = builder.layout
      let (number, ordinalBits) = (builder.sorted[index], UInt64(layout.ordinalBits))
      index += 1
      let restBits = UInt64(layout.keyBits - builder.groupBits)
      let key = (UInt64(group) << restBits | number >> ordinalBits) << UInt64(64 - layout.keyBits)
      return IndexEntry(key: key, ordinal: UInt32(number & (1 << ordinalBits - 1)))
    }
  }

  /// The keys that several sections have.
  package func repeatedKeys(_ keys: KeyList) -> Set<UInt64> {
    var repeated = Set<UInt64>()
    // Entries of higher ordinals may keep more bits.
    let unkept = UInt64.max >> UInt64(form.keyBits(of: base))
    var entries = entries
    var alike: [IndexEntry] = []
    func compare() {
      guard alike.count > 1 else { return }
      // Keys that begin alike are rarely the same.
      var seen = Set<UInt64>()
      for entry in alike {
        let key = keys[Int(entry.ordinal)]
        if !seen.insert(key).inserted { repeated.insert(key) }
      }
    }
    while let entry = entries.next() {
      if let first = alike.first, first.key & ~unkept != entry.key & ~unkept {
        compare()
        alike.removeAll(keepingCapacity: true)
      }
      alike.append(entry)
    }
    compare()
    return repeated
  }

  /// Whether the bytes at `offset` are this segment's frame.
  package func isEncoded(in file: Span<UInt8>, at offset: Int, length: Int) -> Bool {
    MergedSegment(newer: self).isEncoded(in: file, at: offset, length: length)
  }

  /// Hands out the frame's bytes in pieces, and returns its checksum, which is the last eight of
  /// them.
  ///
  /// - Throws: ``ArchiveError`` if the segment is longer than a frame can be, and what `sink`
  ///   throws.
  @discardableResult
  package func encode(_ sink: (Span<UInt8>) throws -> Void) throws -> UInt64 {
    try MergedSegment(newer: self).encode(sink)
  }
}
