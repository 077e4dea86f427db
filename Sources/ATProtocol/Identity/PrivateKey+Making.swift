internal import CCrypto
internal import IPLD

/// New private keys, and the forms in which they are kept.
///
/// PEM of PKCS #8 (RFC 5958), encrypted or not: PBES2 (RFC 8018) with scrypt (RFC 7914, N 16384, r
/// 8, p 1) and AES-256-CBC, which `openssl pkey` reads. And the private multikey that atproto's
/// tools print:
///
/// ```
/// z  base58btc( 81 26  32 bytes )    secp256k1-priv, 0x1301
/// z  base58btc( 86 26  32 bytes )    p256-priv, 0x1306
/// ```
extension PrivateKey {
  private static let making: carpack_key_making_functions = unsafe CryptoLibrary.find {
    var functions = carpack_key_making_functions()
    return unsafe carpack_find_key_making_functions($0, &functions) != 0 ? functions : nil
  }

  /// How long a key in PEM may be, in bytes, with room to spare.
  private static let maximumPEM = 4096
  /// How long the secret number is, in bytes.
  private static let scalarLength = 32

  /// A new key from libcrypto's random numbers.
  ///
  /// - Throws: ``Fault/cannotSign`` if libcrypto makes none.
  package static func generate(on curve: VerificationKey.Curve) throws(Fault) -> PrivateKey {
    var library = making
    guard let key = unsafe carpack_generate_key(&library, curve.groupName) else {
      throw failed(.cannotSign)
    }
    return try unsafe PrivateKey(taking: key)
  }

  /// The key as PEM.
  ///
  /// - Parameter passphrase: what it is encrypted with; nil for a key in the clear.
  /// - Throws: ``Fault/cannotSign`` if libcrypto does not write it.
  package func pem(passphrase: [UInt8]? = nil) throws(Fault) -> [UInt8] {
    var library = Self.making
    var buffer = [UInt8](repeating: 0, count: Self.maximumPEM)
    let capacity = CInt(buffer.count)
    let phrase = (passphrase ?? []).map { CChar(bitPattern: $0) } + [0]
    let length = passphrase.map { CInt($0.count) } ?? -1
    let count = unsafe withKey { key in
      unsafe carpack_write_key(&library, key, phrase, length, &buffer, capacity)
    }
    guard count > 0, count < capacity else { throw Self.failed(.cannotSign) }
    return Array(buffer.prefix(Int(count)))
  }

  /// The key in the form that atproto's tools print.
  ///
  /// - Throws: ``Fault/cannotSign`` if libcrypto does not export it.
  package func multikey() throws(Fault) -> String {
    var library = Self.making
    var scalar = [UInt8](repeating: 0, count: Self.scalarLength)
    guard unsafe withKey({ key in unsafe carpack_key_scalar(&library, key, &scalar) }) != 0 else {
      throw Self.failed(.cannotSign)
    }
    return "z" + Base58.encode(verificationKey.curve.privatePrefix + scalar)
  }

  /// Reads the form that atproto's tools print.
  ///
  /// - Throws: ``Fault/notAKey``, ``Fault/unknownCurve``.
  package convenience init(multikey: String) throws(Fault) {
    guard multikey.utf8.first == UInt8(ascii: "z"),
      let bytes = Base58.decode(Array(multikey.utf8.dropFirst()))
    else { throw .notAKey }
    let curves = VerificationKey.Curve.allCases
    guard let curve = curves.first(where: { bytes.starts(with: $0.privatePrefix) }) else {
      throw .unknownCurve
    }
    try self.init(scalar: bytes.dropFirst(curve.privatePrefix.count), on: curve)
  }

  /// Takes the number that is the key, 32 bytes, the most significant first.
  ///
  /// - Throws: ``Fault/notAKey``.
  private convenience init(scalar: ArraySlice<UInt8>, on curve: VerificationKey.Curve)
    throws(Fault)
  {
    guard scalar.count == Self.scalarLength, curve.isScalar(scalar) else { throw .notAKey }
    // As the shortest PKCS #8, from which libcrypto finds the point that belongs to the number.
    let sec1 = Self.der(0x30, Self.der(0x02, [1]) + Self.der(0x04, Array(scalar)))
    let algorithm = Self.der(
      0x30, Self.der(0x06, Self.ecPublicKey) + Self.der(0x06, curve.objectIdentifier))
    let pkcs8 = Self.der(0x30, Self.der(0x02, [0]) + algorithm + Self.der(0x04, sec1))
    let pem =
      "-----BEGIN PRIVATE KEY-----\n" + Self.padded(Base64.encode(pkcs8))
      + "\n-----END PRIVATE KEY-----\n"
    try self.init(pem: Array(pem.utf8))
  }

  /// Reads a key in one of its forms: PEM; a line that is a private multikey; or one that ends in 64
  /// hexadecimal digits, as the reference server keeps its rotation key, which is on secp256k1.
  ///
  /// - Throws: ``Fault``.
  package convenience init(text: [UInt8], passphrase: [UInt8]? = nil) throws(Fault) {
    let lines = String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline)
    if let line = lines.first(where: { !$0.hasPrefix("#") && !$0.isEmpty }), line.hasPrefix("z") {
      try self.init(multikey: String(line.prefix { !$0.isWhitespace }))
    } else if let scalar = Self.hexadecimal(lines) {
      try self.init(scalar: scalar[...], on: .k256)
    } else {
      try self.init(pem: text, passphrase: passphrase)
    }
  }

  /// The number in a text that has nothing but that, or a setting whose value it is.
  private static func hexadecimal(_ lines: [Substring]) -> [UInt8]? {
    let lines = lines.filter { !$0.hasPrefix("#") && !$0.allSatisfy(\.isWhitespace) }
    guard lines.count == 1, let line = lines.first else { return nil }
    let isDigit = { (character: Character) in character.isASCII && character.isHexDigit }
    let text = line.split(separator: "=").last ?? ""
    let digits = text.filter { !$0.isWhitespace && $0 != "\"" }
    guard digits.count == 2 * scalarLength, digits.allSatisfy(isDigit) else { return nil }
    let values = digits.map { UInt8($0.hexDigitValue ?? 0) }
    return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
  }

  /// `1.2.840.10045.2.1`, a key on a curve.
  private static let ecPublicKey: [UInt8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01]

  /// A value in DER that is shorter than 128 bytes.
  private static func der(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    [tag, UInt8(content.count)] + content
  }

  private static func padded(_ base64: String) -> String {
    base64 + String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
  }
}

extension VerificationKey.Curve {
  /// The first bytes of a private multikey: the curve's multicodec as a varint.
  fileprivate var privatePrefix: [UInt8] { self == .k256 ? [0x81, 0x26] : [0x86, 0x26] }

  /// The curve's object identifier in DER: `1.3.132.0.10`, `1.2.840.10045.3.1.7`.
  fileprivate var objectIdentifier: [UInt8] {
    self == .k256
      ? [0x2b, 0x81, 0x04, 0x00, 0x0a] : [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]
  }
}
