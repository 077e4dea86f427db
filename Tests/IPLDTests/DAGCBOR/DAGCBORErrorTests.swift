import IPLD
import TestSupport
import Testing

/// Bytes that break one rule, and what must be said about them.
private struct Refusal: CustomTestStringConvertible {
  let hex: String
  let reason: DAGCBORError.Reason
  let offset: Int

  init(_ hex: String, _ reason: DAGCBORError.Reason, at offset: Int) {
    self.hex = hex
    self.reason = reason
    self.offset = offset
  }

  var testDescription: String { "\(hex.prefix(40)): \(reason) at \(offset)" }
  var error: DAGCBORError { DAGCBORError(reason, offset: offset) }

  /// Thirty-two bytes that stand for a digest.
  static let digest = String(repeating: "aa", count: 32)
}

@Suite struct `DAG-CBOR that breaks a rule` {
  @Test(arguments: DAGCBORProfile.allCases, Refusal.dagCBOR)
  fileprivate func `is refused with the rule and the place`(
    profile: DAGCBORProfile, refusal: Refusal
  ) throws {
    let reading = DAGCBORReading(try [UInt8](hex: refusal.hex), profile)
    #expect(reading.error == refusal.error)
    #expect(reading.inconsistency == nil)
  }

  @Test(arguments: Refusal.notFinite)
  fileprivate func `is refused for floats that are not finite`(refusal: Refusal) throws {
    let reading = DAGCBORReading(try [UInt8](hex: refusal.hex))
    #expect(reading.error == refusal.error)
    #expect(reading.inconsistency == nil)
  }

  @Test(arguments: Refusal.atproto)
  fileprivate func `of AT Protocol only is refused there and accepted elsewhere`(
    refusal: Refusal
  ) throws {
    let bytes = try [UInt8](hex: refusal.hex)
    let narrow = DAGCBORReading(bytes, .atproto)
    #expect(narrow.error == refusal.error)
    #expect(narrow.inconsistency == nil)
    let wide = DAGCBORReading(bytes, .dagCBOR)
    #expect(wide.error == nil)
    #expect(wide.inconsistency == nil)
  }

  @Test func `is described with its place`() {
    let refusals = Refusal.dagCBOR + Refusal.notFinite + Refusal.atproto
    for refusal in refusals {
      let text = refusal.error.description
      #expect(text.hasPrefix("not valid DAG-CBOR: "))
      #expect(text.hasSuffix(", at byte \(refusal.offset)"))
    }
    #expect(
      DAGCBORError(.tooDeep, offset: 7).description.contains("\(DAGCBORScanner.maximumDepth)"))
  }
}

extension Refusal {
  /// What is wrong under every profile; too deep is in the suite of limits.
  static let dagCBOR =
    truncated + heads + tagsAndLinks + keys + text + simpleValues

  static let truncated = [
    Refusal("", .truncated, at: 0),
    Refusal("18", .truncated, at: 1),
    Refusal("19 01", .truncated, at: 2),
    Refusal("1a 00 01 00", .truncated, at: 4),
    Refusal("1b 00 00 00 01 00 00 00", .truncated, at: 8),
    Refusal("42 01", .truncated, at: 2),
    Refusal("61", .truncated, at: 1),
    Refusal("81", .truncated, at: 1),
    Refusal("82 01", .truncated, at: 2),
    Refusal("81 82 01", .truncated, at: 3),
    Refusal("a1 61", .truncated, at: 2),
    Refusal("a1 61 61", .truncated, at: 3),
    Refusal("a2 61 61 01", .truncated, at: 4),
    Refusal("d8", .truncated, at: 1),
    Refusal("d8 2a", .truncated, at: 2),
    Refusal("d8 2a 42 00", .truncated, at: 4),
    Refusal("fb 3f f8", .truncated, at: 3),
    Refusal("00 00", .trailingBytes, at: 1),
    Refusal("80 f6", .trailingBytes, at: 1),
    Refusal("82 00 00 00", .trailingBytes, at: 3),
    Refusal("a0 a0", .trailingBytes, at: 1),
    Refusal("61 61 ff", .trailingBytes, at: 2),
  ]

  static let heads = [
    Refusal("18 00", .notMinimal, at: 0),
    Refusal("18 17", .notMinimal, at: 0),
    Refusal("19 00 ff", .notMinimal, at: 0),
    Refusal("1a 00 00 ff ff", .notMinimal, at: 0),
    Refusal("1b 00 00 00 00 ff ff ff ff", .notMinimal, at: 0),
    Refusal("38 17", .notMinimal, at: 0),
    Refusal("39 00 ff", .notMinimal, at: 0),
    Refusal("58 00", .notMinimal, at: 0),
    Refusal("78 01 61", .notMinimal, at: 0),
    Refusal("99 00 00", .notMinimal, at: 0),
    Refusal("ba 00 00 00 00", .notMinimal, at: 0),
    Refusal("d8 17 00", .notMinimal, at: 0),
    Refusal("d9 00 2a 41 00", .notMinimal, at: 0),
    Refusal("81 18 00", .notMinimal, at: 1),
    Refusal("a1 78 01 61 00", .notMinimal, at: 1),
    Refusal("a1 61 61 18 17", .notMinimal, at: 3),
    Refusal("d8 2a 58 01 00", .notMinimal, at: 2),
    Refusal("1c", .reservedHead, at: 0),
    Refusal("3d", .reservedHead, at: 0),
    Refusal("5e", .reservedHead, at: 0),
    Refusal("7c", .reservedHead, at: 0),
    Refusal("9d", .reservedHead, at: 0),
    Refusal("be", .reservedHead, at: 0),
    Refusal("dc", .reservedHead, at: 0),
    Refusal("fc", .reservedHead, at: 0),
    Refusal("fd", .reservedHead, at: 0),
    Refusal("fe", .reservedHead, at: 0),
    Refusal("81 fe", .reservedHead, at: 1),
    Refusal("1f", .indefiniteLength, at: 0),
    Refusal("3f", .indefiniteLength, at: 0),
    Refusal("5f 41 00 ff", .indefiniteLength, at: 0),
    Refusal("7f 61 61 ff", .indefiniteLength, at: 0),
    Refusal("9f 00 ff", .indefiniteLength, at: 0),
    Refusal("bf 61 61 00 ff", .indefiniteLength, at: 0),
    Refusal("df 00", .indefiniteLength, at: 0),
    Refusal("ff", .indefiniteLength, at: 0),
    Refusal("81 ff", .indefiniteLength, at: 1),
    Refusal("a1 7f 61 61 ff 00", .indefiniteLength, at: 1),
  ]

  static let tagsAndLinks = [
    Refusal("c0 00", .unknownTag, at: 0),
    Refusal("c2 41 01", .unknownTag, at: 0),
    Refusal("d8 29 41 00", .unknownTag, at: 0),
    Refusal("d8 2b 41 00", .unknownTag, at: 0),
    Refusal("d9 d9 f7 00", .unknownTag, at: 0),
    Refusal("81 c1 00", .unknownTag, at: 1),
    Refusal("d8 2a 00", .notALink, at: 2),
    Refusal("d8 2a 61 00", .notALink, at: 2),
    Refusal("d8 2a 80", .notALink, at: 2),
    Refusal("d8 2a d8 2a 41 00", .notALink, at: 2),
    Refusal("d8 2a 40", .notALink, at: 2),
    Refusal("d8 2a 58 24 01 71 12 20 \(digest)", .notALink, at: 2),
    Refusal("81 d8 2a 40", .notALink, at: 3),
    Refusal("d8 2a 41 00", .malformedCID(.truncated), at: 4),
    Refusal("d8 2a 58 24 00 01 71 12 20 \(digest.dropLast(2))", .malformedCID(.truncated), at: 40),
    Refusal("d8 2a 58 26 00 01 71 12 20 \(digest) 00", .malformedCID(.trailingBytes), at: 41),
    Refusal("d8 2a 46 00 01 55 00 00 ff", .malformedCID(.trailingBytes), at: 8),
    Refusal("d8 2a 42 00 02", .malformedCID(.unknownVersion), at: 4),
    Refusal("d8 2a 42 00 00", .malformedCID(.unknownVersion), at: 4),
    Refusal("d8 2a 43 00 81 00", .malformedCID(.varintNotMinimal), at: 4),
    Refusal("d8 2a 46 00 01 d5 00 00 00", .malformedCID(.varintNotMinimal), at: 5),
    Refusal(
      "d8 2a 4e 00 01 ff ff ff ff ff ff ff ff ff 01 00 00", .malformedCID(.varintTooLong), at: 5),
    Refusal("d8 2a 46 00 01 55 12 81 10", .malformedCID(.digestTooLong), at: 7),
  ]

  static let keys = [
    Refusal("a1 00 00", .keyNotString, at: 1),
    Refusal("a1 20 00", .keyNotString, at: 1),
    Refusal("a1 41 61 00", .keyNotString, at: 1),
    Refusal("a1 80 00", .keyNotString, at: 1),
    Refusal("a1 a0 00", .keyNotString, at: 1),
    Refusal("a1 f6 00", .keyNotString, at: 1),
    Refusal("a1 d8 2a 41 00", .keyNotString, at: 1),
    Refusal("a2 61 61 01 00 00", .keyNotString, at: 4),
    Refusal("a2 61 62 00 61 61 00", .keysNotSorted, at: 4),
    Refusal("a2 62 61 61 00 61 62 00", .keysNotSorted, at: 5),
    Refusal("a2 61 61 00 60 00", .keysNotSorted, at: 4),
    Refusal("a3 61 61 00 61 62 00 61 61 00", .keysNotSorted, at: 7),
    Refusal("a2 62 c3 a9 00 62 7a 7a 00", .keysNotSorted, at: 5),
    Refusal("a1 61 61 a2 61 62 00 61 61 00", .keysNotSorted, at: 7),
    Refusal("a2 61 61 00 61 61 01", .duplicateKey, at: 4),
    Refusal("a2 60 00 60 00", .duplicateKey, at: 3),
    Refusal("a2 61 61 a1 61 61 00 61 61 00", .duplicateKey, at: 7),
  ]

  static let text = [
    Refusal("61 80", .notUTF8, at: 1),
    Refusal("61 ff", .notUTF8, at: 1),
    Refusal("62 c0 80", .notUTF8, at: 1),
    Refusal("62 c3 28", .notUTF8, at: 1),
    Refusal("62 e2 82", .notUTF8, at: 1),
    Refusal("63 ed a0 80", .notUTF8, at: 1),
    Refusal("64 f4 90 80 80", .notUTF8, at: 1),
    Refusal("64 f0 80 80 80", .notUTF8, at: 1),
    Refusal("6a 61 61 61 61 61 61 61 61 61 c3", .notUTF8, at: 1),
    Refusal("78 18 \(String(repeating: "61", count: 23)) a9", .notUTF8, at: 2),
    Refusal("a1 61 ff 00", .notUTF8, at: 2),
    Refusal("a2 61 61 00 61 c3 00", .notUTF8, at: 5),
  ]

  static let simpleValues = [
    Refusal("e0", .unknownSimpleValue, at: 0),
    Refusal("f3", .unknownSimpleValue, at: 0),
    Refusal("f7", .unknownSimpleValue, at: 0),
    Refusal("f8 14", .unknownSimpleValue, at: 0),
    Refusal("f8 ff", .unknownSimpleValue, at: 0),
    Refusal("81 f7", .unknownSimpleValue, at: 1),
    Refusal("f9 3c 00", .shortFloat, at: 0),
    Refusal("f9 7e 00", .shortFloat, at: 0),
    Refusal("fa 3f 80 00 00", .shortFloat, at: 0),
    Refusal("82 00 f9 00 00", .shortFloat, at: 2),
  ]

  static let notFinite = [
    Refusal("fb 7f f0 00 00 00 00 00 00", .notFinite, at: 0),
    Refusal("fb ff f0 00 00 00 00 00 00", .notFinite, at: 0),
    Refusal("fb 7f f8 00 00 00 00 00 00", .notFinite, at: 0),
    Refusal("fb 7f f0 00 00 00 00 00 01", .notFinite, at: 0),
    Refusal("fb ff ff ff ff ff ff ff ff", .notFinite, at: 0),
    Refusal("81 fb 7f f0 00 00 00 00 00 00", .notFinite, at: 1),
  ]

  static let atproto = [
    Refusal("fb 3f f8 00 00 00 00 00 00", .floatNotAllowed, at: 0),
    Refusal("fb 00 00 00 00 00 00 00 00", .floatNotAllowed, at: 0),
    Refusal("a1 61 61 fb 40 00 00 00 00 00 00 00", .floatNotAllowed, at: 3),
    Refusal("1b 80 00 00 00 00 00 00 00", .integerOutOfRange, at: 0),
    Refusal("1b ff ff ff ff ff ff ff ff", .integerOutOfRange, at: 0),
    Refusal("3b 80 00 00 00 00 00 00 00", .integerOutOfRange, at: 0),
    Refusal("82 00 3b ff ff ff ff ff ff ff ff", .integerOutOfRange, at: 2),
    // Version 0; DAG-PB; SHA-256 cut to 20 bytes; SHA-512 cut to 32; identity.
    Refusal("d8 2a 58 23 00 12 20 \(digest)", .linkNotAllowed, at: 0),
    Refusal("d8 2a 58 25 00 01 70 12 20 \(digest)", .linkNotAllowed, at: 0),
    Refusal("d8 2a 58 19 00 01 71 12 14 \(digest.prefix(40))", .linkNotAllowed, at: 0),
    Refusal("d8 2a 58 25 00 01 71 13 20 \(digest)", .linkNotAllowed, at: 0),
    Refusal("81 d8 2a 45 00 01 55 00 00", .linkNotAllowed, at: 1),
  ]
}
