/// The characters of a base, each standing for the value of its place.
package struct Alphabet: Sendable {
  private let characters: [UInt8]
  private let values: [UInt8]

  /// An alphabet of these characters, all ASCII.
  package init(_ text: String) {
    characters = Array(text.utf8)
    var values = [UInt8](repeating: 0xff, count: 256)
    for (value, character) in characters.enumerated() { values[Int(character)] = UInt8(value) }
    self.values = values
  }

  /// The character for a value.
  package subscript(value: some BinaryInteger) -> UInt8 { characters[Int(value)] }

  /// The value that a character stands for; nil for any other.
  package func value(of character: UInt8) -> UInt8? {
    let value = values[Int(character)]
    return value < 0xff ? value : nil
  }
}

/// Cuts a stream of bits into groups of another length, the most significant bits first: bytes into
/// characters and back.
package struct BitGroups {
  private let length: UInt32
  private var held: UInt32 = 0
  /// How many bits are held that make no group yet.
  package private(set) var heldCount: UInt32 = 0

  /// Groups of this many bits, 8 at most.
  package init(of length: UInt32) { self.length = length }

  /// Takes the next bits, 8 at most, and hands out each group that is full.
  @inline(__always)
  package mutating func put(_ value: UInt32, bits count: UInt32, _ group: (UInt32) -> Void) {
    held = held &<< count | value
    heldCount += count
    while heldCount >= length {
      heldCount -= length
      group(held &>> heldCount & (1 &<< length - 1))
    }
  }

  /// What is held, filled up with zeros to a group; nil if nothing is.
  package var padded: UInt32? {
    heldCount == 0 ? nil : held &<< (length - heldCount) & (1 &<< length - 1)
  }
}
