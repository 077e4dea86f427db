import Age
import TestSupport
import Testing

private let content = Array("a backup of a backup".utf8)

@Suite struct `An age file` {
  private let identity: AgeIdentity
  private let file: [UInt8]

  init() throws {
    identity = try AgeIdentity.generate()
    file = try AgeFile.seal(content.span, for: [identity.recipient])
  }

  @Test(arguments: [0, 1, 65_536, 65_537, 200_000])
  func `has the length that is computed for it, and opens`(_ length: Int) throws {
    let content = [UInt8](repeating: 7, count: length)
    let file = try AgeFile.seal(content.span, for: [identity.recipient])
    #expect(file.count == AgeFile.length(of: length))
    #expect(AgeHeader.length(recipients: 1) == 168)
    #expect(try AgeFile.open(file.span, with: [identity]) == content)
    #expect(try AgeFile.openSecret(file.span, with: [identity]).exposed == content)
  }

  @Test func `is another each time`() throws {
    let again = try AgeFile.seal(content.span, for: [identity.recipient])
    #expect(Set(zip(file, again).map { $0 ^ $1 }).count > 50)
  }

  @Test func `is refused with any byte changed`() throws {
    for index in file.indices {
      for change in [0x01, 0x20, 0x80] as [UInt8] {
        var damaged = file
        damaged[index] ^= change
        #expect(throws: AgeError.self, "byte \(index)") {
          try AgeFile.open(damaged.span, with: [identity])
        }
      }
    }
  }

  @Test func `is refused when it is cut off anywhere`() throws {
    for length in file.indices {
      #expect(throws: AgeError.self, "\(length) bytes") {
        try AgeFile.open(file.span.extracting(0..<length), with: [identity])
      }
    }
  }

  @Test func `is refused with a byte inserted, left out or appended`() throws {
    for index in 0...file.count {
      var longer = file
      longer.insert(0x41, at: index)
      #expect(throws: AgeError.self, "byte \(index)") {
        try AgeFile.open(longer.span, with: [identity])
      }
      guard index < file.count else { continue }
      var shorter = file
      shorter.remove(at: index)
      #expect(throws: AgeError.self, "byte \(index)") {
        try AgeFile.open(shorter.span, with: [identity])
      }
    }
  }

  @Test func `says what is wrong with it`() throws {
    func reason(_ file: [UInt8]) -> AgeError? {
      #expect(throws: AgeError.self) { try AgeFile.open(file.span, with: [identity]) }
    }
    func changed(_ index: Int) -> [UInt8] {
      var changed = file
      changed[index] ^= 1
      return changed
    }
    // In Base64 a flipped bit could leave a byte that is not in its alphabet.
    func withAnotherLetter(_ index: Int) -> [UInt8] {
      var changed = file
      changed[index] = UInt8(ascii: file[index] == UInt8(ascii: "A") ? "B" : "A")
      return changed
    }
    let header = AgeHeader.length(recipients: 1)
    #expect(reason([]) == .notAnAgeFile)
    #expect(reason(Array("carpack".utf8)) == .notAnAgeFile)
    #expect(reason(Array("age-encryption.org/v2\n".utf8)) == .unsupportedVersion)
    #expect(reason(Array(file[..<100])) == .truncatedHeader)
    #expect(reason(Array(file[..<(header + 15)])) == .truncatedHeader)
    #expect(reason(Array(file[..<(header + 16)])) == .truncatedPayload)
    #expect(reason(withAnotherLetter(80)) == .noIdentityMatches)
    #expect(reason(withAnotherLetter(header - 10)) == .forgedHeader)
    #expect(reason(changed(header)) == .damagedChunk(0))
    #expect(reason(changed(file.count - 1)) == .damagedChunk(0))
    let stranger = try AgeIdentity.generate()
    #expect(throws: AgeError.noIdentityMatches) {
      try AgeFile.open(file.span, with: [stranger])
    }
    #expect(throws: AgeError.noIdentityMatches) { try AgeFile.open(file.span, with: []) }
    #expect(throws: AgeError.notSealedWithPassphrase) {
      try AgeFile.open(file.span, with: passphrase("x"))
    }
    #expect("\(AgeError.noIdentityMatches)" == "none of the keys opens it")
  }

  @Test func `opens for each of its recipients`() throws {
    let others = try (0..<4).map { _ in try AgeIdentity.generate() }
    let all = others + [identity]
    let file = try AgeFile.seal(content.span, for: all.map(\.recipient))
    #expect(file.count == AgeFile.length(of: content.count, recipients: 5))
    for one in all {
      #expect(try AgeFile.open(file.span, with: [one]) == content)
    }
    #expect(try AgeFile.open(self.file.span, with: all) == content)
    #expect(throws: AgeError.noRecipient) { try AgeFile.seal(content.span, for: []) }
    #expect(throws: AgeError.tooManyRecipients(limit: 512)) {
      try AgeHeader.make(for: Array(repeating: identity.recipient, count: 513))
    }
  }

  @Test func `is not sealed for a point of low order`() throws {
    // Bech32 of 32 zeros.
    let zero = try AgeRecipient(
      parsing: "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq5cu47z")
    #expect(throws: AgeError.malformedRecipient("its point is of low order")) {
      try AgeFile.seal(content.span, for: [identity.recipient, zero])
    }
  }

  @Test func `is bounded in its header`() throws {
    let start = Array("age-encryption.org/v1\n".utf8)
    let endless = start + Array("-> grease ".utf8) + [UInt8](repeating: 0x41, count: 1 << 17)
    #expect(throws: AgeError.malformedHeader("it has over 65536 bytes", offset: 65_536)) {
      try AgeHeader(parsing: endless.span)
    }
    let many = start + Array(String(repeating: "-> x\n\n", count: 1000).utf8)
    #expect(throws: AgeError.malformedHeader("it has over 512 stanzas", offset: 22 + 512 * 6)) {
      try AgeHeader(parsing: many.span)
    }
  }
}

@Suite struct `An age file with a passphrase` {
  @Test func `opens with that passphrase only`() throws {
    for isArmored in [false, true] {
      let file = try AgeFile.seal(
        content.span, with: passphrase("correct horse"), isArmored: isArmored)
      #expect(try AgeFile.open(file.span, with: passphrase("correct horse")) == content)
      #expect(
        try AgeFile.openSecret(file.span, with: passphrase("correct horse")).exposed == content)
      #expect(throws: AgeError.wrongPassphrase) {
        try AgeFile.open(file.span, with: passphrase("correct horse "))
      }
      let identity = try AgeIdentity.generate()
      #expect(throws: AgeError.passphraseNeeded(workFactor: 4)) {
        try AgeFile.open(file.span, with: [identity])
      }
    }
    #expect(throws: AgeError.emptyPassphrase) { try passphrase("") }
  }

  @Test func `asks for no more work than the limit`() throws {
    let file = try AgeFile.seal(content.span, with: passphrase("x", workFactor: 11))
    #expect(try AgeFile.open(file.span, with: passphrase("x", limit: 11)) == content)
    #expect(throws: AgeError.workFactorTooHigh(11, limit: 10)) {
      try AgeFile.open(file.span, with: passphrase("x", limit: 10))
    }
  }

  @Test func `is for nobody else`() throws {
    let identity = try AgeIdentity.generate()
    let forKey = try AgeHeader.make(for: [identity.recipient]).bytes
    let forPhrase = try AgeHeader.make(for: passphrase("x")).bytes
    // The stanzas of both in one header.
    let stanza = forKey[22..<(22 + 98)]
    for place in [22, forPhrase.count - 48] {
      var both = forPhrase
      both.insert(contentsOf: stanza, at: place)
      #expect {
        try AgeHeader(parsing: both.span)
      } throws: { error in
        guard
          case .malformedHeader("a scrypt stanza is not the only stanza", _) = error as? AgeError
        else { return false }
        return true
      }
    }
  }
}

@Suite struct `Armor of an age file` {
  @Test func `gives back what it is of`() throws {
    var generator = SeededGenerator(seed: 1)
    for length in Array(0...200) + [4095, 4096] {
      let bytes = generator.bytes(length)
      let text = AgeArmor.encode(bytes.span)
      let isArmor = AgeArmor.isArmor(text.span)
      #expect(isArmor)
      #expect(try AgeArmor.decode(text.span) == bytes)
      let lines = text.split(separator: 0x0a, omittingEmptySubsequences: false)
      #expect(lines.allSatisfy { $0.count <= 64 })
    }
  }

  @Test func `is refused when it is cut off anywhere`() throws {
    let bytes = [UInt8](repeating: 9, count: 100)
    let text = AgeArmor.encode(bytes.span)
    // Without the end of its last line it is whole.
    for length in 0..<(text.count - 1) {
      #expect(throws: AgeError.self, "\(length) characters") {
        try AgeArmor.decode(text.span.extracting(0..<length))
      }
    }
  }

  @Test func `says in which line it is malformed`() throws {
    let bytes = [UInt8](repeating: 9, count: 100)
    var text = AgeArmor.encode(bytes.span)
    text[110] = UInt8(ascii: "*")
    #expect(
      throws: AgeError.malformedArmor("it is not 4 to 64 characters of Base64", line: 3)
    ) { try AgeArmor.decode(text.span) }
  }
}
