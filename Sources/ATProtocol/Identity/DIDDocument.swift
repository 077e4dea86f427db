internal import IPLD

/// What a DID leads to: an account's handles, its signing key and its server.
///
/// Read from JSON. Other names, keys and services may be of any shape; ids may be written with the
/// DID in front or without. Sources: [DID](https://atproto.com/specs/did), "DID documents"; [DID
/// Core](https://www.w3.org/TR/did-core/).
package struct DIDDocument: Hashable, Sendable {
  /// The longest document that is read, in bytes: usual ones have a kilobyte or two.
  package static let maximumLength = 256 << 10

  /// The DID that it is about, as it says itself.
  package let id: DID
  /// The names it claims that are handles, the first being the account's; whether they lead back to
  /// the DID is another question.
  package let handles: [Handle]
  /// The key that signs the repository, or why there is none.
  package let signingKeyResult: Result<VerificationKey, DIDDocumentGap>
  /// The account's server, or why there is none.
  package let pdsResult: Result<ServerOrigin, DIDDocumentGap>

  /// Reads a document.
  ///
  /// - Throws: ``DIDDocumentError`` if it is too long, not JSON, or not an object with a DID as its
  ///   `id`. Anything else that is wrong is a gap.
  package init(_ bytes: Span<UInt8>) throws(DIDDocumentError) {
    guard bytes.count <= Self.maximumLength else { throw .tooLong }
    let value: IPLDValue
    do {
      value = try DataModelJSON.decode(bytes.array)
    } catch {
      throw .notJSON(error)
    }
    guard let text = value["id"]?.string, let id = try? DID(text) else { throw .noID }
    self.id = id
    handles = (value["alsoKnownAs"]?.array ?? []).compactMap(Self.handle)
    signingKeyResult = Self.signingKey(of: id, value)
    pdsResult = Self.pds(of: id, value)
  }

  /// The handle it claims: the first name that is one.
  package var handle: Handle? { handles.first }

  /// The key that signs the repository.
  package var signingKey: VerificationKey? {
    if case .success(let key) = signingKeyResult { key } else { nil }
  }

  /// The account's server: scheme, host and port.
  package var pds: String? {
    if case .success(let origin) = pdsResult { origin.text } else { nil }
  }

  /// The handle in a name `at://…`.
  static func handle(_ name: IPLDValue) -> Handle? {
    // Names of other kinds can be claimed freely.
    guard let text = name.string, text.hasPrefix("at://") else { return nil }
    return try? Handle(String(text.dropFirst("at://".count)))
  }

  /// The first object of a list whose id is this fragment.
  private static func entry(_ fragment: String, of did: DID, in list: IPLDValue?) -> IPLDValue? {
    let ids = [fragment, did.text + fragment]
    return list?.array?.first { $0["id"]?.string.map(ids.contains) ?? false }
  }

  private static func signingKey(of did: DID, _ document: IPLDValue)
    -> Result<VerificationKey, DIDDocumentGap>
  {
    guard let method = entry("#atproto", of: did, in: document["verificationMethod"]) else {
      return .failure(.noKey)
    }
    if let controller = method["controller"], controller.string != did.text {
      return .failure(.foreignKey)
    }
    let type = method["type"]?.string ?? ""
    guard let text = method["publicKeyMultibase"]?.string else { return .failure(.noKey) }
    do throws(VerificationKeyError) {
      switch type {
      case "Multikey": return .success(try VerificationKey(multikey: text))
      case "EcdsaSecp256k1VerificationKey2019":
        return .success(try VerificationKey(legacyMultibase: text, on: .k256))
      case "EcdsaSecp256r1VerificationKey2019":
        return .success(try VerificationKey(legacyMultibase: text, on: .p256))
      default: return .failure(.unknownKeyType(type))
      }
    } catch {
      return .failure(.malformedKey(error))
    }
  }

  private static func pds(of did: DID, _ document: IPLDValue)
    -> Result<ServerOrigin, DIDDocumentGap>
  {
    guard let service = entry("#atproto_pds", of: did, in: document["service"]) else {
      return .failure(.noServer)
    }
    let type = "AtprotoPersonalDataServer"
    switch service["type"] {
    case nil: break
    case .string(type)?: break
    case .array(let types)? where types.contains(.string(type)): break
    default: return .failure(.noServer)
    }
    guard let text = service["serviceEndpoint"]?.string else { return .failure(.noServer) }
    do throws(ServerOriginError) {
      return .success(try ServerOrigin(text))
    } catch {
      return .failure(.unusableServer(text, error))
    }
  }
}

/// Why a text is not a DID document.
package enum DIDDocumentError: Error, Equatable, Sendable, CustomStringConvertible {
  /// It is longer than ``DIDDocument/maximumLength``.
  case tooLong
  /// It is not JSON.
  case notJSON(JSONError)
  /// It is not an object with a DID as its `id`.
  case noID

  /// The message for people.
  package var description: String {
    switch self {
    case .tooLong: "the DID document is over \(DIDDocument.maximumLength) bytes"
    case .notJSON(let error): "the DID document is \(error)"
    case .noID: "this is not a DID document: its id is not a DID"
    }
  }
}

/// What a DID document lacks.
package enum DIDDocumentGap: Error, Hashable, Sendable, CustomStringConvertible {
  /// There is no verification method `#atproto` with a key.
  case noKey
  /// The key is controlled by another DID.
  case foreignKey
  /// The key is of an unknown type.
  case unknownKeyType(String)
  /// The key cannot be read.
  case malformedKey(VerificationKeyError)
  /// There is no service `#atproto_pds`.
  case noServer
  /// The service's address cannot be used.
  case unusableServer(String, ServerOriginError)

  /// The message for people.
  package var description: String {
    switch self {
    case .noKey: "the DID document names no signing key"
    case .foreignKey: "the DID document's signing key is controlled by another DID"
    case .unknownKeyType(let type):
      "the DID document's signing key is of an unknown type, \"\(Self.short(type))\""
    case .malformedKey(let error): "the DID document's signing key cannot be read: \(error)"
    case .noServer: "the DID document names no server"
    case .unusableServer(let text, let error):
      "the DID document's server, \"\(Self.short(text))\", cannot be used: \(error)"
    }
  }

  /// The beginning of the text there.
  private static func short(_ text: String) -> String {
    text.unicodeScalars.prefix(200).map { $0.escaped(asASCII: true) }.joined()
  }
}
