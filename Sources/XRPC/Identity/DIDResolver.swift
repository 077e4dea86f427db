package import ATProtocol
package import HTTP

/// Finds the documents of DIDs: in the PLC directory, or on the host that a `did:web` names.
package struct DIDResolver: Sendable {
  private let directory: String
  private let allowsLoopback: Bool
  private let fetcher: any DocumentFetcher
  /// A document that was fetched a moment ago, and is not fetched again.
  package var known: (bytes: [UInt8], document: DIDDocument)?

  /// A resolver that asks the PLC directory that the user set.
  package init(_ options: NetworkOptions, fetcher: any DocumentFetcher) {
    directory = options.plcDirectory
    allowsLoopback = options.namesLoopback
    self.fetcher = fetcher
  }

  /// Where a DID's document is.
  ///
  /// - Throws: ``IdentityError/unsupportedDID(_:)``, ``IdentityError/privateHost(_:)``.
  package func documentURL(of did: DID) throws(IdentityError) -> String {
    switch did.method {
    case "plc" where Self.isPLC(did.methodSpecificID): return "\(directory)/\(did)"
    case "web": return try webOrigin(of: did).text + "/.well-known/did.json"
    default: throw .unsupportedDID(did)
    }
  }

  /// The DID document, as received and as parsed; one request.
  ///
  /// - Throws: ``IdentityError`` if there is none, or what came is malformed or another account's;
  ///   `CancellationError`.
  package func document(of did: DID) async throws -> (bytes: [UInt8], document: DIDDocument) {
    if let known, known.document.id == did { return known }
    let (bytes, _) = try await fetch(
      try documentURL(of: did), "the DID document of \(did)", of: did,
      limit: DIDDocument.maximumLength, accept: "application/did+ld+json, application/json;q=0.9")
    let document: DIDDocument
    do throws(DIDDocumentError) {
      document = try DIDDocument(bytes.span)
    } catch .notJSON {
      throw IdentityError.unexpectedAnswer(
        "the DID document of \(did)", status: 200, IdentityError.excerpt(bytes))
    } catch {
      throw IdentityError.malformedDocument(did, error)
    }
    guard document.id == did else {
      throw IdentityError.otherDocument(did, found: document.id)
    }
    return (bytes, document)
  }

  /// The history of a `did:plc`, as received: `PLCLog` reads it.
  ///
  /// - Throws: ``IdentityError`` if the DID is of another method or the directory does not answer;
  ///   `CancellationError`.
  package func plcLog(of did: DID) async throws -> [UInt8] { try await datedPLCLog(of: did).bytes }

  /// The same without times, as a directory may have it that keeps none.
  ///
  /// - Throws: as ``plcLog(of:)`` does.
  package func untimedPLCLog(of did: DID) async throws -> [UInt8] {
    try await fetchLog("/log", of: did).bytes
  }

  /// The same, and the time by the directory's clock; nil if it does not say.
  ///
  /// - Throws: as ``plcLog(of:)`` does.
  func datedPLCLog(of did: DID) async throws -> (bytes: [UInt8], time: UnixTime?) {
    guard did.method == "plc" else { throw IdentityError.unsupportedDID(did) }
    let (bytes, date) = try await fetchLog("/log/audit", of: did)
    let seconds = date.flatMap { HTTPDate.unixTime($0) }
    return (bytes, seconds.map { UnixTime(microseconds: Int64($0 * 1_000_000)) })
  }

  private func fetchLog(_ page: String, of did: DID) async throws -> (bytes: [UInt8], date: String?)
  {
    try await fetch(
      try documentURL(of: did) + page, "the PLC log of \(did)", of: did,
      limit: PLCLog.maximumLength, accept: "application/json")
  }

  private func fetch(
    _ url: String, _ question: String, of did: DID, limit: Int, accept: String
  ) async throws -> (bytes: [UInt8], date: String?) {
    do {
      let (response, body) = try await fetcher.get(url, limit: limit, accept: accept, retries: true)
      switch response.status {
      case 200..<300: return (body, response["date"])
      // The directory says "DID not available" of a tombstone and "DID not registered" of what
      // never was.
      case 404 where !String(decoding: body, as: UTF8.self).contains("not available"):
        throw IdentityError.didNotFound(did)
      case 404, 410: throw IdentityError.didGone(did)
      case let status:
        throw IdentityError.unexpectedAnswer(
          question, status: status, IdentityError.excerpt(body))
      }
    } catch let error as TransportError {
      throw IdentityError.noAnswer(question, error)
    }
  }

  /// 24 characters of base 32, as the specification of did:plc has it.
  private static func isPLC(_ id: Substring) -> Bool {
    id.utf8.count == 24
      && id.utf8.allSatisfy {
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 || UInt8(ascii: "2")...UInt8(ascii: "7") ~= $0
      }
  }

  /// The server of a `did:web`: a host name; with a port (`%3A` in front), and over http, only if
  /// it is this machine and the user named a server here.
  private func webOrigin(of did: DID) throws(IdentityError) -> ServerOrigin {
    let id = did.methodSpecificID
    let host = id.prefix { $0 != "%" }
    let port = id.dropFirst(host.count)
    // A colon would begin a path, which accounts' DIDs do not have.
    guard !host.contains(":"), port.isEmpty || port.lowercased().hasPrefix("%3a"),
      !port.dropFirst(3).contains("%"), !port.dropFirst(3).contains(":")
    else { throw .unsupportedDID(did) }
    let authority = host + (port.isEmpty ? "" : ":" + port.dropFirst(3))
    do {
      let origin = try ServerOrigin("https://" + authority)
      if origin.isLoopback {
        guard allowsLoopback else { throw IdentityError.privateHost(did) }
        return try ServerOrigin("http://" + authority)
      }
      if let address = IPAddress(String(host)), address.scope != .global {
        throw IdentityError.privateHost(did)
      }
      // An address is not a host name: its last label begins with a digit.
      let top = host.split(separator: ".").last?.utf8.first ?? 0
      guard port.isEmpty, host.contains("."), !(UInt8(ascii: "0")...UInt8(ascii: "9") ~= top) else {
        throw ServerOriginError.notAnOrigin
      }
      return origin
    } catch let error as IdentityError {
      throw error
    } catch {
      throw .unsupportedDID(did)
    }
  }
}

extension NetworkOptions {
  /// Whether the user named a server on this machine, and so is developing: servers here may be
  /// asked for other things, too.
  var namesLoopback: Bool {
    allowsLoopback
      || [plcDirectory, dnsOverHTTPS, handleResolver, pds].compactMap(\.self)
        .contains(where: Self.isLoopback)
  }

  /// Whether a URL leads to this machine.
  static func isLoopback(_ url: String) -> Bool {
    // An invalid URL is reported when it is used.
    (try? ServerOrigin.split(url))?.origin.isLoopback ?? false
  }
}
