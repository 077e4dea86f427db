internal import ATProtocol
internal import IPLD
internal import Snapshots
internal import XRPC

/// What the document of a `did:web` has to say for a restore, besides what it says already.
struct WebDocument {
  /// The key that signs, as `did:key:…`.
  let signingKey: String
  /// The server; nil for the one that it names.
  var pds: PLCState.Service?
  /// The name that the account goes by, `at://…`; nil for those that it has.
  var name: String?

  private static let (keyID, serverID) = ("#atproto", "#atproto_pds")

  /// Whether a document says all of it.
  func isPublished(in document: DIDDocument) -> Bool {
    let isThere =
      pds.map { wanted in
        document.pds.map { AccountRestore.isSame($0, wanted.endpoint) } ?? false
      } ?? true
    return isThere && document.signingKey?.didKey == signingKey
  }

  /// The document to publish: one that was there, with this in it.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - former: the document as it was; nil if there is none.
  func json(of did: DID, after former: IPLDValue?) -> String {
    var document =
      former?.map ?? [
        "@context": .array([
          .string("https://www.w3.org/ns/did/v1"), .string("https://w3id.org/security/multikey/v1"),
        ])
      ]
    document["id"] = .string(did.text)
    let method: IPLDMap = [
      "id": .string(did.text + Self.keyID), "type": .string("Multikey"),
      "controller": .string(did.text),
      "publicKeyMultibase": .string(String(signingKey.dropFirst("did:key:".count))),
    ]
    put(.map(method), Self.keyID, of: did, into: "verificationMethod", of: &document)
    if let pds {
      let service: IPLDMap = [
        "id": .string(Self.serverID), "type": .string(pds.type),
        "serviceEndpoint": .string(pds.endpoint),
      ]
      put(.map(service), Self.serverID, of: did, into: "service", of: &document)
    }
    if let name {
      let others = (document["alsoKnownAs"]?.array ?? []).filter { $0 != .string(name) }
      document["alsoKnownAs"] = .array([.string(name)] + others)
    }
    return IPLDValue.map(document).json(pretty: true)
  }

  /// Puts an entry in the place of the one with the same id, or after all others.
  private func put(
    _ entry: IPLDValue, _ id: String, of did: DID, into list: String, of document: inout IPLDMap
  ) {
    var entries = document[list]?.array ?? []
    let place = entries.firstIndex { [id, did.text + id].contains($0["id"]?.string ?? "") }
    if let place { entries[place] = entry } else { entries.append(entry) }
    document[list] = .array(entries)
  }
}

extension AccountRestore {
  /// The longest pause between two looks at the document of a `did:web`, in seconds.
  private static let longestPause = 20.0

  /// Says what the document of a `did:web` has to say, and waits until it does if somebody is there.
  ///
  /// - Throws: ``RestoreError/unpublished(_:)`` if it does not, and that is not to be waited for.
  func publish(_ wanted: WebDocument) async throws -> Outcome {
    let resolver = IdentityResolver(network: network).dids
    let url = try resolver.documentURL(of: did)
    var isTold = false
    var pause = 1.0
    while true {
      var former = try archived.didDocument()
      do {
        let (bytes, document) = try await resolver.document(of: did)
        if wanted.isPublished(in: document) { return ("the document at \(url)", !isTold) }
        former = bytes
      } catch let error as IdentityError {
        tell(.warning("\(error)"))
      }
      if !isTold {
        // One that cannot be read is replaced as a whole.
        let present = former.flatMap { try? DataModelJSON.decode($0) }
        tell(.document(JSON: wanted.json(of: did, after: present), url: url))
        guard options.waitsForDocument, options.agrees(.identity) else {
          throw RestoreError.unpublished(url)
        }
        isTold = true
      }
      try await Task.sleep(for: .seconds(pause))
      pause = min(2 * pause, Self.longestPause)
    }
  }
}
