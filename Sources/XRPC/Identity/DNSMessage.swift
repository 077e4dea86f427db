internal import ATProtocol
internal import IPLD

/// An answer of DNS, read for its TXT records (RFC 1035, section 4).
///
/// ```
/// 0  identity      u16
/// 2  flags         u16   the low four bits: the response code
/// 4  questions     u16
/// 6  answers       u16
/// 8  authorities   u16
/// 10 additional    u16
/// 12 questions:    name, type u16, class u16
///    answers:      name, type u16, class u16, time to live u32, length u16, data
/// ```
/// Integers have their most significant byte first. Nothing after the answers is examined.
package enum DNSMessage {
  /// The response code of success.
  static let noError = 0
  /// The response code for a name that does not exist.
  static let noSuchName = 3

  private static let txt: UInt16 = 16
  private static let internet: UInt16 = 1

  /// The TXT records among the answers, the strings of each put together.
  ///
  /// Whose name they stand under is not compared: an alias (CNAME) may lie between it and what was
  /// requested.
  ///
  /// - Throws: ``DNSError`` if the message ends early or says that there was an error.
  package static func txtRecords(in message: Span<UInt8>) throws(DNSError) -> [String] {
    var offset = 2
    guard let flags = message.readBigEndian(&offset, as: UInt16.self),
      let questions = message.readBigEndian(&offset, as: UInt16.self),
      let answers = message.readBigEndian(&offset, as: UInt16.self)
    else { throw .malformed }
    // A question is none of ours to answer.
    guard flags & 0x8000 != 0 else { throw .malformed }
    switch Int(flags & 15) {
    case noError: break
    case noSuchName: return []
    case let code: throw .failed(code: code)
    }
    offset = 12
    for _ in 0..<questions {
      try skipName(message, &offset)
      guard message.readRange(&offset, length: 4) != nil else { throw .malformed }
    }
    var records: [String] = []
    for _ in 0..<answers {
      try skipName(message, &offset)
      guard let type = message.readBigEndian(&offset, as: UInt16.self),
        let kind = message.readBigEndian(&offset, as: UInt16.self),
        message.readRange(&offset, length: 4) != nil,
        let length = message.readBigEndian(&offset, as: UInt16.self),
        let data = message.readRange(&offset, length: Int(length))
      else { throw .malformed }
      guard type == txt, kind == internet else { continue }
      records.append(try text(of: message.extracting(data)))
    }
    return records
  }

  /// Steps over a name: labels with their lengths, up to one of no length or a pointer to the rest,
  /// which is not followed.
  private static func skipName(_ message: Span<UInt8>, _ offset: inout Int) throws(DNSError) {
    while true {
      guard let length = message.readByte(&offset) else { throw .malformed }
      switch length >> 6 {
      case 0 where length == 0: return
      case 0:
        guard message.readRange(&offset, length: Int(length)) != nil else { throw .malformed }
      case 3:
        guard message.readByte(&offset) != nil else { throw .malformed }
        return
      default: throw .malformed
      }
    }
  }

  /// The strings of a record, each after its length in one byte, put together; what is not UTF-8 in
  /// them cannot be a DID.
  private static func text(of data: Span<UInt8>) throws(DNSError) -> String {
    var offset = 0
    var text: [UInt8] = []
    while let length = data.readByte(&offset) {
      guard let part = data.readRange(&offset, length: Int(length)) else { throw .malformed }
      text.append(contentsOf: data.extracting(part))
    }
    return String(decoding: text, as: UTF8.self)
  }
}
