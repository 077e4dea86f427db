import ATProtocol
import IPLD
import NIOHTTP1
import Snapshots

/// What a PLC directory answers, from the documents and logs that were archived.
///
/// Source: [did:plc](https://web.plc.directory/spec/v0.1/did-plc), "Directory".
struct Directory: Sendable {
  let shelf: Shelf
  /// Whether documents name this server as the account's.
  let impersonates: Bool

  /// What of a request's path is the directory's; nil if nothing is.
  ///
  /// Resolvers put the DID behind the host, whatever the path is that they are given.
  static func path(in path: String) -> Substring? {
    if path.hasPrefix("/did/") { return path.dropFirst(5) }
    let isDID = ["/did:", "/did%3A", "/did%3a"].contains { path.hasPrefix($0) }
    return isDID ? path.dropFirst() : nil
  }

  /// Responds to a path of the directory: a DID, and maybe more.
  ///
  /// - Throws: what reading an archive throws.
  func answer(_ path: Substring, origin: String) throws -> Response {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    let did = parts.first.flatMap(PercentEncoding.decode) ?? ""
    guard did.hasPrefix("did:"), let account = shelf.account(did) else {
      return Self.unknown("DID not registered: \(did.prefix(200))")
    }
    switch parts.dropFirst().joined(separator: "/") {
    case "":
      guard let document = try document(of: account, origin: origin) else {
        return Self.unknown("the archive has no DID document of \(did)")
      }
      var json = JSONWriter()
      document.writeJSON(to: &json)
      return .bytes(json.takeBytes(), type: "application/did+ld+json")
    case "log/audit":
      guard let log = try account.snapshot().plcLog(),
        (try? PLCLog(log.span, of: account.did))?.isAudit != false
      else { break }
      return .bytes(log, type: "application/json; charset=utf-8")
    case "log":
      guard let operations = try operations(of: account) else { break }
      return Self.json(.array(operations))
    case "log/last":
      guard let last = try operations(of: account)?.last else { break }
      return Self.json(last)
    default: break
    }
    return Self.unknown("the archive does not have that")
  }

  /// The account's DID document, in which this server replaces the account's if that is wanted; nil
  /// if none was archived, or it is malformed.
  func document(of account: ServedAccount, origin: String) throws -> IPLDValue? {
    guard let bytes = try account.snapshot().didDocument(),
      let document = try? DataModelJSON.decode(bytes)
    else { return nil }
    guard impersonates, var map = document.map else { return document }
    let services = map["service"]?.array ?? []
    let others = services.filter { service in
      !(service["id"]?.string?.hasSuffix("#atproto_pds") ?? false)
    }
    let own: IPLDMap = [
      "id": .string("#atproto_pds"), "type": .string("AtprotoPersonalDataServer"),
      "serviceEndpoint": .string(origin),
    ]
    map["service"] = .array([.map(own)] + others)
    return .map(map)
  }

  /// The valid operations, without what the directory adds.
  private func operations(of account: ServedAccount) throws -> [IPLDValue]? {
    guard let bytes = try account.snapshot().plcLog(),
      let log = try? PLCLog(bytes.span, of: account.did)
    else { return nil }
    return log.entries.filter { !$0.isNullified }.map(\.operation)
  }

  private static func json(_ value: IPLDValue) -> Response {
    var json = JSONWriter()
    value.writeJSON(to: &json)
    return .bytes(json.takeBytes(), type: "application/json; charset=utf-8")
  }

  private static func unknown(_ message: String) -> Response {
    .json(status: .notFound) { $0.field("message", message) }
  }
}
