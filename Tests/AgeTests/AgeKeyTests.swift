import Age
import TestSupport
import Testing

/// The identity of most vectors.
private let identityText =
  "AGE-SECRET-KEY-1EGTZVFFV20835NWYV6270LXYVK2VKNX2MMDKWYKLMGR48UAWX40Q2P2LM0"

@Suite struct `Keys of age` {
  @Test func `are the texts that they were read from`() throws {
    let identity = try AgeIdentity(parsing: secret(identityText))
    #expect(identity.text == secret(identityText))
    #expect(AgeIdentity.textLength == identityText.utf8.count)
    for _ in 0..<20 {
      let identity = try AgeIdentity.generate()
      #expect(try AgeIdentity(parsing: identity.text) == identity)
      #expect(try AgeRecipient(parsing: identity.recipient.text) == identity.recipient)
      #expect(identity.recipient.text.utf8.count == 62)
    }
  }

  @Test func `are refused with any character changed, left out or added`() throws {
    let identity = Array(identityText.utf8)
    let recipient = Array(try AgeIdentity(parsing: identity.span).recipient.text.utf8)
    for (text, isRecipient) in [(identity, false), (recipient, true)] {
      var others: [[UInt8]] = [[], text + [0x0a], [0x20] + text]
      for index in text.indices {
        for change in [0x01, 0x20] as [UInt8] {
          others.append(text)
          others[others.count - 1][index] ^= change
        }
        others.append(text)
        others[others.count - 1].remove(at: index)
        others.append(text)
        others[others.count - 1].insert(UInt8(ascii: "q"), at: index)
      }
      for other in others {
        #expect(throws: AgeError.self) {
          if isRecipient {
            _ = try AgeRecipient(parsing: String(decoding: other, as: UTF8.self))
          } else {
            _ = try AgeIdentity(parsing: other.span)
          }
        }
      }
    }
  }

  @Test func `have neither bits nor characters left over`() throws {
    // The checksum of each matches: 32 zeros; a bit after them; and one character less.
    _ = try AgeRecipient(
      parsing: "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq5cu47z")
    #expect(throws: AgeError.malformedRecipient("its last bits are not zero")) {
      try AgeRecipient(
        parsing: "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqg2vceql")
    }
    #expect(throws: AgeError.malformedRecipient("it has 61 characters, not 62")) {
      try AgeRecipient(
        parsing: "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq6vg3z8")
    }
  }

  @Test func `are in one case`() throws {
    let recipient = try AgeIdentity(parsing: secret(identityText)).recipient
    #expect(throws: AgeError.self) { try AgeRecipient(parsing: recipient.text.uppercased()) }
    #expect(throws: AgeError.self) {
      try AgeIdentity(parsing: secret(identityText.lowercased()))
    }
  }

  @Test func `say what they are instead`() throws {
    let recipient = try AgeIdentity(parsing: secret(identityText)).recipient
    #expect(
      throws: AgeError.malformedRecipient(
        "it is an identity (secret key), which only its owner may have")
    ) { try AgeRecipient(parsing: identityText) }
    #expect(
      throws: AgeError.malformedIdentity(
        "it is a recipient (public key), which cannot decrypt", line: nil)
    ) { try AgeIdentity(parsing: secret(recipient.text)) }
  }

  @Test func `are described without their secret`() throws {
    let identity = try AgeIdentity(parsing: secret(identityText))
    var dumped = ""
    dump(identity, to: &dumped)
    dump(try passphrase("PASSPHRASE"), to: &dumped)
    for text in ["\(identity)", String(reflecting: identity), dumped] {
      #expect(!text.contains("EGTZ") && !text.contains("PASSPHRASE"))
    }
    #expect("\(identity)" == identity.recipient.text)
  }
}

@Suite struct `An identity file` {
  private let first: AgeIdentity
  private let second: AgeIdentity
  private let text: [UInt8]

  init() throws {
    first = try AgeIdentity.generate()
    second = try AgeIdentity.generate()
    text = Array(
      """
      # created: 2026-08-01T12:00:00Z
      # public key: \(first.recipient)
      \(first.text.exposedText)

      \(second.text.exposedText)
      """.utf8)
  }

  @Test func `holds identities, comments and empty lines`() throws {
    #expect(try AgeIdentityFile(text.span).identities == [first, second])
    let lines = text.split(separator: 0x0a, omittingEmptySubsequences: false)
    let withReturns = lines.flatMap { $0 + [0x0d, 0x0a] as [UInt8] }
    #expect(try AgeIdentityFile(withReturns.span).identities == [first, second])
    let isSealed = AgeIdentityFile.isSealed(text.span)
    #expect(!isSealed)
  }

  @Test func `is refused with any other line, which is named`() throws {
    for line in ["x", " \(identityText)", "\(identityText) # mine", "age1x"] {
      let other = text + Array("\n\(line)\n".utf8)
      #expect {
        try AgeIdentityFile(other.span)
      } throws: { error in
        guard case .malformedIdentity(_, line: 6) = error as? AgeError else { return false }
        return true
      }
    }
    for empty in ["", "\n", "# nothing\n"] {
      let bytes = Array(empty.utf8)
      #expect(throws: AgeError.noIdentity) { try AgeIdentityFile(bytes.span) }
    }
    let long = [UInt8](repeating: 0x23, count: AgeIdentityFile.maximumLength + 1)
    #expect(throws: AgeError.identityFileTooLong(limit: 1 << 20)) {
      try AgeIdentityFile(long.span)
    }
  }

  @Test(arguments: [false, true])
  func `may be sealed with a passphrase`(_ isArmored: Bool) throws {
    let sealed = try AgeFile.seal(text.span, with: passphrase("y"), isArmored: isArmored)
    let isSealed = AgeIdentityFile.isSealed(sealed.span)
    #expect(isSealed)
    #expect(throws: AgeError.passphraseNeeded(workFactor: 4)) { try AgeIdentityFile(sealed.span) }
    #expect(throws: AgeError.wrongPassphrase) {
      try AgeIdentityFile(sealed.span, passphrase: passphrase("z"))
    }
    let file = try AgeIdentityFile(sealed.span, passphrase: passphrase("y"))
    #expect(file.identities == [first, second])
  }

  @Test func `may not be sealed for a key`() throws {
    let sealed = try AgeFile.seal(text.span, for: [first.recipient])
    #expect(throws: AgeError.notSealedWithPassphrase) { try AgeIdentityFile(sealed.span) }
    #expect(throws: AgeError.notSealedWithPassphrase) {
      try AgeIdentityFile(sealed.span, passphrase: passphrase("y"))
    }
  }
}
