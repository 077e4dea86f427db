import TestSupport

/// What may happen to the bytes of a file.
enum SequenceDamage: String, CaseIterable {
  case flip, zero, overwrite, insert, remove, exchange, overlay, truncate

  /// Lets any of it happen somewhere, and says so in words.
  ///
  /// Indexes, footers and manifests are met as often as the rest, which is mostly blocks and blobs;
  /// of long damages some are of whole sectors.
  ///
  /// - Returns: The words; where it happened; and by how many bytes what follows was moved.
  static func befall(_ bytes: inout [UInt8], _ random: inout SeededGenerator) -> (
    words: String, place: Int, growth: Int
  ) {
    let damage = allCases[Int(random.next() % UInt64(allCases.count))]
    let length = [1, 16, 300, 512, 4096][Int(random.next() % 5)]
    guard bytes.count > 2 * length, bytes.count > 100 else {
      return ("nothing happens to so short a file", 0, 0)
    }
    let landmarks = ForwardWalk(bytes).landmarks
    func anyPlace() -> Int {
      let choice = random.next() % 3
      guard choice > 0, !landmarks.isEmpty else {
        return Int(random.next() % UInt64(bytes.count))
      }
      // The last of them is the footer that counts.
      let number =
        choice == 1 ? random.next() % UInt64(landmarks.count) : UInt64(landmarks.count - 1)
      let range = landmarks[Int(number)]
      return range.lowerBound
        + (random.next() % 3 == 0 ? 0 : Int(random.next() % UInt64(range.count)))
    }
    var place = anyPlace()
    if length >= 512, random.next() % 2 == 0 { place = place / 512 * 512 }
    let other = min(anyPlace(), bytes.count - length)
    let count = bytes.count
    let words = damage.befall(&bytes, place..<min(count, place + length), other, &random)
    return (words, place, damage == .truncate ? 0 : bytes.count - count)
  }

  private func befall(
    _ bytes: inout [UInt8], _ range: Range<Int>, _ other: Int, _ random: inout SeededGenerator
  ) -> String {
    let count = bytes.count
    let piece = Array(bytes[other..<other + range.count])
    switch self {
    case .flip:
      let bit = UInt8(random.next() % 8)
      bytes[range.lowerBound] ^= 1 << bit
      return "bit \(bit) of byte \(range.lowerBound) of \(count) is flipped"
    case .zero:
      bytes.replaceSubrange(range, with: repeatElement(0, count: range.count))
      return "bytes \(range) of \(count) are zeroed"
    case .overwrite:
      bytes.replaceSubrange(range, with: random.bytes(range.count))
      return "bytes \(range) of \(count) are overwritten"
    case .insert:
      bytes.insert(contentsOf: random.bytes(range.count), at: range.lowerBound)
      return "\(range.count) bytes are inserted at \(range.lowerBound) of \(count)"
    case .remove:
      bytes.removeSubrange(range)
      return "bytes \(range) of \(count) are removed"
    case .exchange:
      for (index, byte) in piece.enumerated() {
        bytes[other + index] = bytes[range.lowerBound + index]
        bytes[range.lowerBound + index] = byte
      }
      return "\(range.count) bytes at \(range.lowerBound) and \(other) of \(count) are exchanged"
    case .overlay:
      bytes.replaceSubrange(range, with: piece)
      return
        "\(range.count) bytes at \(other) of \(count) are laid over those at \(range.lowerBound)"
    case .truncate:
      bytes.removeSubrange(range.lowerBound...)
      return "the file of \(count) is cut off at \(range.lowerBound)"
    }
  }
}
