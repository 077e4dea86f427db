/// Bech32 (BIP 173) of 32 bytes, as recipients and identities of age are written.
///
/// ```
/// prefix, "1"    in clear
/// 52             characters of 5 bits each, the highest first; the last has 4 bits of zero
/// 6              checksum
/// ```
///
/// A text is in one case throughout. Nothing of what is read or written is kept: secrets pass
/// through registers only.
enum Bech32 {
  /// How many bytes are written.
  static let byteCount = 32
  private static let digitCount = 52
  private static let checksumCount = 6
  private static let alphabet = Array("qpzry9x8gf2tvdw0s3jn54khce6mua7l".utf8)
  /// The digit of each character of ASCII in lower case, 0xff where it is none.
  private static let digits = {
    var digits = [UInt8](repeating: 0xff, count: 256)
    for (digit, character) in alphabet.enumerated() { digits[Int(character)] = UInt8(digit) }
    return digits
  }()

  /// How a kind of key is written.
  struct Form {
    /// The prefix of the text, without the `1`, in lower case.
    let prefix: [UInt8]
    /// Whether the text is in upper case.
    let isUpper: Bool

    static let recipient = Form(prefix: Array("age".utf8), isUpper: false)
    static let identity = Form(prefix: Array("age-secret-key-".utf8), isUpper: true)

    /// How many characters the text has.
    var length: Int { prefix.count + 1 + digitCount + checksumCount }

    /// How the text begins.
    fileprivate var beginning: [UInt8] { prefix.map(cased) + [UInt8(ascii: "1")] }

    fileprivate func cased(_ character: UInt8) -> UInt8 {
      isUpper && (0x61...0x7a).contains(character) ? character - 0x20 : character
    }
  }

  /// What is wrong with a text.
  enum Fault: Error {
    case otherBeginning
    case length
    case character
    case padding
    case checksum
  }

  /// Reads a text.
  ///
  /// - Parameter target: receives the 32 bytes.
  /// - Throws: ``Fault``; then the content of `target` is undefined.
  static func decode(
    _ text: Span<UInt8>, form: Form, into target: UnsafeMutableRawBufferPointer
  ) throws(Fault) {
    precondition(target.count == byteCount)
    let beginning = form.beginning
    guard text.count >= beginning.count,
      beginning.indices.allSatisfy({ text[$0] == beginning[$0] })
    else { throw .otherBeginning }
    guard text.count == form.length else { throw .length }
    var checksum = Checksum(prefix: form.prefix)
    var (bits, bitCount, position) = (UInt32(0), 0, 0)
    for index in beginning.count..<text.count {
      let character = text[index]
      let isLetter = (0x41...0x5a).contains(character & 0xdf)
      guard !isLetter || (character & 0x20 == 0) == form.isUpper else { throw .character }
      let digit = digits[Int(isLetter ? character | 0x20 : character)]
      guard digit < 32 else { throw .character }
      checksum.add(digit)
      guard index < beginning.count + digitCount else { continue }
      bits = bits << 5 | UInt32(digit)
      bitCount += 5
      if bitCount >= 8 {
        bitCount -= 8
        unsafe target[position] = UInt8(truncatingIfNeeded: bits >> bitCount)
        position += 1
      }
    }
    guard checksum.isValid else { throw .checksum }
    guard bits & 0xf == 0 else { throw .padding }
  }

  /// Writes a text.
  ///
  /// - Parameter target: receives as many characters as the form has.
  static func encode(
    _ bytes: Span<UInt8>, form: Form, into target: UnsafeMutableRawBufferPointer
  ) {
    precondition(bytes.count == byteCount && target.count == form.length)
    let beginning = form.beginning
    unsafe target.copyBytes(from: beginning)
    var checksum = Checksum(prefix: form.prefix)
    var (bits, bitCount, position) = (UInt32(0), 0, beginning.count)
    func write(_ digit: UInt32) {
      unsafe target[position] = form.cased(alphabet[Int(digit & 31)])
      position += 1
    }
    for index in 0...byteCount {
      // The last digit is filled up with zeros.
      bits = bits << 8 | (index < byteCount ? UInt32(bytes[index]) : 0)
      bitCount += index < byteCount ? 8 : 4
      if index == byteCount { bits >>= 4 }
      while bitCount >= 5 {
        bitCount -= 5
        checksum.add(UInt8(bits >> bitCount & 31))
        write(bits >> bitCount)
      }
    }
    let sum = checksum.finished()
    for index in 0..<checksumCount { write(sum >> (5 * (checksumCount - 1 - index))) }
  }
}

/// The checksum of BIP 173, a BCH code over digits of 5 bits.
private struct Checksum {
  private static let generator: [UInt32] = [
    0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3,
  ]
  private var state: UInt32 = 1

  init(prefix: [UInt8]) {
    for character in prefix { add(character >> 5) }
    add(0)
    for character in prefix { add(character & 31) }
  }

  mutating func add(_ digit: UInt8) {
    let top = state >> 25
    state = (state & 0x1ff_ffff) << 5 ^ UInt32(digit)
    for bit in 0..<5 where top >> bit & 1 == 1 { state ^= Self.generator[bit] }
  }

  /// Whether the digits so far end with their checksum.
  var isValid: Bool { state == 1 }

  /// The checksum of the digits so far, in 30 bits.
  func finished() -> UInt32 {
    var copy = self
    for _ in 0..<6 { copy.add(0) }
    return copy.state ^ 1
  }
}
