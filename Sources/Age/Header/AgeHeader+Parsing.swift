/// Reading headers, from the grammar in c2sp.org/age and in its one form: lines end with LF, Base64
/// is canonical, nothing is skipped.
extension AgeHeader {
  /// Reads the header at the beginning of bytes; other bytes may follow it.
  ///
  /// ``maximumLength`` bytes of a file are always enough.
  ///
  /// - Throws: ``AgeError/notAnAgeFile``, ``AgeError/unsupportedVersion``,
  ///   ``AgeError/truncatedHeader``, ``AgeError/malformedHeader(_:offset:)``.
  package init(parsing bytes: Span<UInt8>) throws(AgeError) {
    guard Self.isBeginning(bytes) else { throw .notAnAgeFile }
    var lines = Lines()
    let first = try lines.next(in: bytes)
    guard first.elementsEqual(Self.firstLine.dropLast()) else { throw .unsupportedVersion }
    var stanzas: [AgeStanza] = []
    var (last, lastOffset) = (try lines.next(in: bytes), lines.offset)
    while !last.starts(with: Self.mark) {
      guard stanzas.count < Self.maximumStanzas else {
        throw .malformedHeader("it has over \(Self.maximumStanzas) stanzas", offset: lastOffset)
      }
      stanzas.append(try Self.stanza(first: last, offset: lastOffset, &lines, in: bytes))
      (last, lastOffset) = (try lines.next(in: bytes), lines.offset)
    }
    guard !stanzas.isEmpty else {
      throw .malformedHeader("it has no stanza", offset: lastOffset)
    }
    let text = last.dropFirst(Self.mark.count)
    guard text.first == UInt8(ascii: " "),
      let code = StrictBase64.decode(Array(text.dropFirst()).span),
      code.count == KeyDerivation.length
    else { throw .malformedHeader("its HMAC is not 32 bytes in Base64", offset: lastOffset) }

    length = lines.end
    authenticated = bytes.extracting(0..<(lastOffset + Self.mark.count)).array
    self.code = code
    var keyStanzas: [X25519Stanza] = []
    var passphraseStanza: ScryptStanza?
    for stanza in stanzas {
      if stanza.kind.elementsEqual(X25519Stanza.kind.utf8) {
        keyStanzas.append(try X25519Stanza(parsing: stanza))
      } else if stanza.kind.elementsEqual(ScryptStanza.kind.utf8) {
        // So that a file which a passphrase opens was sealed by one who knew it.
        guard stanzas.count == 1 else {
          throw stanza.malformed("a scrypt stanza is not the only stanza")
        }
        passphraseStanza = try ScryptStanza(parsing: stanza)
      }
    }
    self.keyStanzas = keyStanzas
    self.passphraseStanza = passphraseStanza
  }

  /// Reads a stanza, the first line of which has been read.
  private static func stanza(
    first: [UInt8], offset: Int, _ lines: inout Lines, in bytes: Span<UInt8>
  ) throws(AgeError) -> AgeStanza {
    guard first.starts(with: "-> ".utf8) else {
      throw .malformedHeader("a line begins neither a stanza nor the HMAC", offset: offset)
    }
    let words = first.dropFirst(3).split(
      separator: UInt8(ascii: " "), omittingEmptySubsequences: false
    ).map { [UInt8]($0) }
    guard let kind = words.first,
      words.allSatisfy({ !$0.isEmpty && $0.allSatisfy { (0x21...0x7e).contains($0) } })
    else { throw .malformedHeader("an argument is empty or not ASCII", offset: offset) }
    var text: [UInt8] = []
    var isAtEnd = false
    while !isAtEnd {
      let line = try lines.next(in: bytes)
      guard line.count <= AgeStanza.columns else {
        throw .malformedHeader("a line of a body is too long", offset: lines.offset)
      }
      isAtEnd = line.count < AgeStanza.columns
      text += line
    }
    guard let body = StrictBase64.decode(text.span) else {
      throw .malformedHeader("the body of a stanza is not Base64", offset: offset)
    }
    return AgeStanza(kind: kind, arguments: Array(words.dropFirst()), body: body, offset: offset)
  }

  /// The lines of a header.
  private struct Lines {
    /// Where the line begins that was read last.
    private(set) var offset = 0
    /// Where the next line begins.
    private(set) var end = 0

    /// The next line, without its end.
    mutating func next(in bytes: Span<UInt8>) throws(AgeError) -> [UInt8] {
      offset = end
      let limit = min(bytes.count, AgeHeader.maximumLength)
      var position = offset
      while position < limit, bytes[position] != UInt8(ascii: "\n") { position += 1 }
      guard position < limit else {
        guard bytes.count < AgeHeader.maximumLength else {
          throw .malformedHeader(
            "it has over \(AgeHeader.maximumLength) bytes", offset: AgeHeader.maximumLength)
        }
        throw .truncatedHeader
      }
      end = position + 1
      return bytes.extracting(offset..<position).array
    }
  }
}
