package import ATProtocol
package import IPLD

/// A JSON object that a server answered with, and the ways to read it.
package struct Answer: Sendable {
  /// The object, unknown fields included.
  package let json: IPLDValue

  /// An answer.
  package init(_ json: IPLDValue) { self.json = json }

  /// An answer as it came; nil if it is not JSON.
  init?(_ body: [UInt8]) {
    do throws(JSONError) { json = try DataModelJSON.decode(body) } catch { return nil }
  }

  /// Required text.
  package func text(_ key: String) throws(AnswerFault) -> String {
    guard let text = json[key]?.string else { throw AnswerFault("it has no \(key)") }
    return text
  }

  /// Text, or a number as text, as some servers write cursors; nil for anything else.
  package func optionalText(_ key: String) -> String? {
    switch json[key] {
    case .string(let text): text
    case .integer(let number): "\(number)"
    default: nil
    }
  }

  /// The cursor of a list's next page; nil at the list's end.
  ///
  /// No cursor, null and an empty text are the same: servers that fill in every field leave it
  /// empty at the end, and to send an empty cursor is to ask for the first page once more.
  ///
  /// - Throws: ``AnswerFault`` if it is neither text nor a whole number.
  package func cursor() throws(AnswerFault) -> String? {
    if let text = optionalText("cursor") { return text.isEmpty ? nil : text }
    guard let cursor = json["cursor"], cursor != .null else { return nil }
    throw AnswerFault("its cursor is not a text")
  }

  /// A Boolean; nil if there is none.
  package func flag(_ key: String) -> Bool? {
    if case .boolean(let flag)? = json[key] { flag } else { nil }
  }

  /// A required identifier.
  package func identifier<I: Identifier>(_ key: String, _ type: I.Type) throws(AnswerFault) -> I {
    let text = try text(key)
    do throws(IdentifierError) {
      return try I(text)
    } catch {
      throw AnswerFault("its \(key) is not valid: \(error)")
    }
  }

  /// An identifier; nil if it is missing or malformed.
  package func optionalIdentifier<I: Identifier>(_ key: String, _ type: I.Type) -> I? {
    do throws(AnswerFault) { return try identifier(key, type) } catch { return nil }
  }

  /// A required CID, as text.
  package func cid(_ key: String) throws(AnswerFault) -> CID {
    let text = try text(key)
    do throws(CIDError) {
      return try CID(text)
    } catch {
      throw AnswerFault("its \(key) is not valid: \(error)")
    }
  }

  /// A CID as text; nil if it is missing or malformed.
  package func optionalCID(_ key: String) -> CID? {
    do throws(AnswerFault) { return try cid(key) } catch { return nil }
  }

  /// A required token that can stand in a header field.
  package func token(_ key: String) throws(AnswerFault) -> String {
    let text = try text(key)
    guard !text.isEmpty, text.utf8.allSatisfy({ 0x21..<0x7f ~= $0 }) else {
      throw AnswerFault("its \(key) is not valid")
    }
    return text
  }

  /// The items of a required array.
  package func items(_ key: String) throws(AnswerFault) -> [IPLDValue] {
    guard let items = json[key]?.array else { throw AnswerFault("it has no \(key)") }
    return items
  }
}
