package import ATProtocol
internal import IPLD

/// The proof that a post says what an app view showed, as its author's server and the author's DID
/// document give it.
///
/// It proves that the key in the document signed the record. That the document was the author's is
/// not proven by the archive: the directory, or the host of a `did:web`, said so when it was
/// fetched.
package struct ContextProof: Sendable {
  /// The response of `com.atproto.sync.getRecord`.
  package let car: [UInt8]
  /// The author's DID document, as received.
  package let document: [UInt8]

  /// A proof, which may be invalid.
  package init(car: [UInt8], document: [UInt8]) { (self.car, self.document) = (car, document) }

  /// Why it does not prove that a post says what was shown; nil if it does.
  package func fault(of post: ContextItem.Post, at uri: ATURI) -> String? {
    let named: DIDDocument
    do throws(DIDDocumentError) { named = try DIDDocument(document.span) } catch {
      return "the DID document cannot be read: \(error)"
    }
    guard uri.authority == .did(named.id) else { return "the DID document is that of \(named.id)" }
    guard let key = named.signingKey else { return "the DID document names no key" }
    let proof: RecordProof
    do throws(RecordProofFault) {
      proof = try RecordProof(judging: car.span, of: uri.path)
    } catch {
      return "\(error)"
    }
    guard proof.did == named.id else { return "the commit belongs to \(proof.did)" }
    guard proof.commit.isSigned(by: key) else {
      return "the commit is not signed with the author's key \(key)"
    }
    guard case .record(let cid, let bytes) = proof.finding else {
      return "the repository has no such record"
    }
    guard cid == post.cid else { return "the record has changed; it is now \(cid)" }
    do {
      let record = try DAGCBORDecoder.decode(bytes.span)
      guard try record == DataModelJSON.decode(Array(post.record.utf8)) else {
        return "the app view showed a different text"
      }
      return nil
    } catch {
      return "the record cannot be read: \(error)"
    }
  }
}

extension ArchivedSnapshot {
  /// The proof of a post; nil if it has none.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if it is damaged.
  package func proof(of post: ContextItem.Post) throws -> ContextProof? {
    try post.proof.map {
      ContextProof(car: try contextPiece($0.car), document: try contextPiece($0.document))
    }
  }

  /// What is wrong with proofs of posts, a sentence each.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if something of the context is damaged.
  package func faultsOfContextProofs(limit: Int) throws -> [String] {
    var faults: [String] = []
    try forEachContextItem { item in
      guard faults.count < limit,
        case (.post(let uri), .post(let post)) = (item.subject, item.content),
        let fault = try proof(of: post)?.fault(of: post, at: uri)
      else { return }
      faults.append("the proof of \(uri) is not valid: \(fault)")
    }
    return faults
  }
}
