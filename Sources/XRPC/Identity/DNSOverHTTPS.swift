internal import ATProtocol
internal import HTTP
internal import IPLD

/// A DNS resolver that is asked over HTTPS and answers in JSON, `application/dns-json`.
///
/// Public resolvers have such an interface; there is no RFC for it. What it says is what a DNS
/// message says: `Status` is the response code, `Answer` a list of records with `type` and `data`.
package struct DNSOverHTTPS: TXTResolver {
  private static let maximumAnswer = 64 << 10
  private static let txt = 16

  private let base: String
  private let fetcher: any DocumentFetcher

  /// The resolver at a URL; one without a path is taken to answer under `/dns-query`.
  package init(_ base: String, fetcher: any DocumentFetcher) {
    let path = base.firstRange(of: "://").map { base[$0.upperBound...] } ?? base[...]
    self.base = path.contains("/") || path.contains("?") ? base : base + "/dns-query"
    self.fetcher = fetcher
  }

  /// The TXT records of a name; as ``TXTResolver/records(of:)`` says.
  package func records(of name: String) async throws -> [String] {
    let url = base + (base.contains("?") ? "&" : "?") + "name=\(name)&type=TXT"
    do {
      let (response, body) = try await fetcher.get(
        url, limit: Self.maximumAnswer, accept: "application/dns-json", retries: true)
      guard response.isSuccess else {
        throw DNSError.unusableServer("it answered \(response.status)")
      }
      return try Self.records(in: body)
    } catch let error as TransportError {
      if case .notSecure = error.reason { throw DNSError.untrustedServer("\(error)") }
      throw DNSError.unusableServer("\(error)")
    }
  }

  /// The TXT records of an answer.
  package static func records(in body: [UInt8]) throws(DNSError) -> [String] {
    let answer: IPLDValue
    do {
      answer = try DataModelJSON.decode(body)
    } catch {
      throw .unusableServer("its answer is \(error)")
    }
    switch answer["Status"]?.integer {
    case DNSMessage.noError: break
    case DNSMessage.noSuchName: return []
    case let code?: throw .failed(code: code)
    case nil: throw .unusableServer("its answer has no status")
    }
    return (answer["Answer"]?.array ?? []).compactMap { record in
      guard record["type"]?.integer == txt else { return nil }
      return record["data"]?.string.map(text)
    }
  }

  /// The text of a record: bare, or strings in quotation marks with blanks between them, as zone
  /// files have it (RFC 1035, section 5.1).
  package static func text(of data: String) -> String {
    guard data.utf8.first == UInt8(ascii: "\"") else { return data }
    var text: [UInt8] = []
    var isInside = false
    var rest = Array(data.utf8)[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "\""): isInside.toggle()
      case UInt8(ascii: "\\") where isInside:
        let digits = rest.prefix(3)
        if digits.count == 3, let code = UInt8(String(decoding: digits, as: UTF8.self)) {
          text.append(code)
          rest = rest.dropFirst(3)
        } else if let escaped = rest.popFirst() {
          text.append(escaped)
        }
      default:
        if isInside { text.append(byte) }
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
