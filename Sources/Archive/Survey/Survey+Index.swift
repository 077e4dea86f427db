internal import IPLD

/// The index that a survey makes.
extension Survey {
  /// What stands for the key of an ordinal that is lost and of which no index segment knows the
  /// key.
  static let lostKey = UInt64.max

  /// The bytes of the index segment of everything that was found; none if nothing was.
  ///
  /// - Throws: ``ArchiveError`` if it is longer than a frame can be.
  func segment(in file: Span<UInt8>) throws -> [UInt8] {
    let builder = segmentBuilder(.packed, from: firstOrdinal, in: file)
    guard builder.count > 0, builder.frameCount > 0 else { return [] }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(builder.length)
    try builder.encode { bytes.append($0) }
    return bytes
  }

  /// The index segment of all ordinals from `base` on, in a form.
  ///
  /// An ordinal that is lost has the key that an index segment still knows, or ``lostKey``; no
  /// frame of the table holds it.
  ///
  /// - Parameters:
  ///   - form: How its entries are written.
  ///   - base: The first ordinal.
  ///   - learned: Keys of lost ordinals that are known from elsewhere.
  ///   - file: The file.
  /// - Precondition: A frame begins with `base`, or nothing lies after it.
  func segmentBuilder(
    _ form: IndexForm, from base: UInt64, learned: [UInt64: UInt64] = [:], in file: Span<UInt8>
  ) -> IndexSegmentBuilder {
    let keys = keysByOrdinal(learned: learned, in: file)
    return IndexSegmentBuilder(
      form, base: base, keys: keys, range: Int(base - firstOrdinal)..<keys.count,
      frames: table.filter { $0.firstOrdinal >= base }[...])
  }

  /// The frame table of everything that was found, in the order of ordinals.
  var table: [FrameEntry] { framesByOrdinal.map(\.entry) }

  func keysByOrdinal(learned: [UInt64: UInt64] = [:], in file: Span<UInt8>) -> KeyList {
    var byOrdinal = [UInt64](repeating: Self.lostKey, count: Int(sectionCount - firstOrdinal))
    let lost = lostOrdinals
    // An incomplete write that was never committed counts as absent, not as damaged.
    let isTail = start > 0
    if !isTail {
      tables?.keptKeys(of: lost, in: file) { ordinal, key in
        byOrdinal[Int(ordinal - firstOrdinal)] = key
      }
    }
    for (ordinal, key) in learned { byOrdinal[Int(ordinal - firstOrdinal)] = key }
    for (number, frame) in frames.enumerated()
    where frame.holdsSections && frame.firstOrdinal != .max
      && !(isTail && incomplete.contains(number))
    {
      for (index, key) in keys(of: frame).enumerated() {
        byOrdinal[Int(frame.firstOrdinal - firstOrdinal) + index] = key
      }
    }
    for section in salvaged where frames[section.frame].firstOrdinal != .max {
      let ordinal = frames[section.frame].firstOrdinal + UInt64(section.index)
      if lost.has(ordinal) { byOrdinal[Int(ordinal - firstOrdinal)] = section.key }
    }
    var list = KeyList()
    for key in byOrdinal { list.append(key) }
    return list
  }
}
