public import ATProtocol
internal import IPLD

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// What is known about an account beside its repository.
public struct AccountFacts: Sendable {
  /// The handle.
  public var handle: Handle?
  /// The server.
  public var pds: String?
  /// The DID document, as received.
  public var didDocument: [UInt8]?
  /// The PLC audit log, as received.
  public var plcLog: [UInt8]?

  /// Nothing known.
  public init() {}

  /// The longest document that is taken: a DID document has a few kilobytes, a PLC log of many years a few hundred.
  public static let maximumDocument = 4 << 20

  /// The parts of a DID document that are of use here ([DID Core](https://www.w3.org/TR/did-core/)).
  private struct Document: Decodable {
    struct Service: Decodable {
      var id: String
      var serviceEndpoint: String?

      private enum CodingKeys: String, CodingKey { case id, serviceEndpoint }

      init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(String.self, forKey: .id)
        // Other services may have endpoints of other shapes.
        serviceEndpoint = try? container.decode(String.self, forKey: .serviceEndpoint)
      }
    }
    var id: String
    var alsoKnownAs: [String]?
    var service: [Service]?
  }

  /// Takes handle and server from a DID document, where they are not known otherwise.
  ///
  /// - Throws: ``BackupError`` if it is not one, or is about another account than `did`.
  mutating func completeFromDIDDocument(of did: DID) throws {
    guard let didDocument else { return }
    guard didDocument.count <= Self.maximumDocument else {
      throw BackupError.malformedDocument("the DID document is over \(Self.maximumDocument) bytes")
    }
    let document: Document
    do {
      document = try JSONDecoder().decode(Document.self, from: Data(didDocument))
    } catch {
      throw BackupError.malformedDocument("the DID document is not one: it is no JSON with an id")
    }
    guard document.id == did.text else {
      throw BackupError.otherAccount(document.id, expected: did.text)
    }
    let handles = (document.alsoKnownAs ?? []).compactMap { name -> Handle? in
      guard name.hasPrefix("at://") else { return nil }
      // A name that is no handle is one of those that anybody may add.
      return try? Handle(String(name.dropFirst("at://".count)))
    }
    handle = handle ?? handles.first
    pds =
      pds
      ?? document.service?.first { $0.id.hasSuffix("#atproto_pds") }?.serviceEndpoint
  }
}
