/// The key prefixes of many sections, in order of ordinals, eight bytes each.
///
/// In pieces, so that it never needs twice its size to grow: at a hundred million sections that
/// matters.
package struct KeyList: Sendable {
  private static let pieceBits = 16

  private var pieces: [[UInt64]] = []
  /// How many there are.
  package private(set) var count = 0

  package init() {}

  /// The key with this number.
  @inline(__always)
  package subscript(index: Int) -> UInt64 {
    pieces[index >> Self.pieceBits][index & (1 << Self.pieceBits - 1)]
  }

  /// Adds a key.
  package mutating func append(_ key: UInt64) {
    if count & (1 << Self.pieceBits - 1) == 0 {
      var piece: [UInt64] = []
      piece.reserveCapacity(pieces.isEmpty ? 0 : 1 << Self.pieceBits)
      pieces.append(piece)
    }
    pieces[count >> Self.pieceBits].append(key)
    count += 1
  }
}
