import TestSupport

/// What may happen to the bytes of a file.
enum SequenceDamage: String, CaseIterable {
  case flip, zero, overwrite, insert, remove, exchange, truncate

  /// Lets it happen somewhere, and says so in words.
  ///
  /// The ends of the file, where indexes and footers lie, are met as often as the rest; of long
  /// damages some are of whole sectors.
  func befall(_ bytes: inout [UInt8], _ random: inout SeededGenerator) -> String {
    guard bytes.count > 1000 else { return "nothing happens to so short a file" }
    let span = random.next() % 2 == 0 ? bytes.count : min(bytes.count, 1500)
    var place = bytes.count - 1 - Int(random.next() % UInt64(span))
    let length = [1, 16, 300, 512, 4096][Int(random.next() % 5)]
    if length >= 512, random.next() % 2 == 0 { place = place / 512 * 512 }
    let end = min(bytes.count, place + length)
    switch self {
    case .flip:
      let bit = UInt8(random.next() % 8)
      bytes[place] ^= 1 << bit
      return "bit \(bit) of byte \(place) of \(bytes.count) is flipped"
    case .zero:
      for index in place..<end { bytes[index] = 0 }
      return "bytes \(place)..<\(end) of \(bytes.count) are zeroed"
    case .overwrite:
      bytes.replaceSubrange(place..<end, with: random.bytes(end - place))
      return "bytes \(place)..<\(end) of \(bytes.count) are overwritten"
    case .insert:
      bytes.insert(contentsOf: random.bytes(length), at: place)
      return "\(length) bytes are inserted at \(place)"
    case .remove:
      bytes.removeSubrange(place..<end)
      return "bytes \(place)..<\(end) are removed, \(bytes.count) are left"
    case .exchange:
      let other = Int(random.next() % UInt64(bytes.count - (end - place)))
      for index in 0..<(end - place) { bytes.swapAt(place + index, other + index) }
      return "\(end - place) bytes at \(place) and \(other) are exchanged"
    case .truncate:
      bytes.removeSubrange(place...)
      return "the file is cut off at \(place)"
    }
  }
}
