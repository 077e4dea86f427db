package import ATProtocol
internal import Files

/// What is known about an account apart from its repository.
package struct AccountFacts: Sendable {
  /// The handle.
  package var handle: Handle?
  /// The server.
  package var pds: String?
  /// The DID document, as received.
  package var didDocument: [UInt8]?
  /// The PLC log, as received.
  package var plcLog: [UInt8]?

  /// No facts.
  package init() {}

  /// The longest document that is accepted: a DID document has a few kilobytes, a PLC log of many
  /// years a few hundred.
  package static let maximumDocument = 4 << 20

  /// Takes handle and server from a DID document, where they are not known otherwise.
  ///
  /// - Throws: ``BackupError`` if it is not one, or is about another account than `did`.
  package mutating func completeFromDIDDocument(of did: DID) throws {
    guard let didDocument else { return }
    let document: DIDDocument
    do {
      document = try DIDDocument(didDocument.span)
    } catch {
      throw BackupError.malformedDocument("\(error)")
    }
    guard document.id == did else {
      throw BackupError.otherAccount(document.id.text, expected: did.text)
    }
    handle = handle ?? document.handle
    pds = pds ?? document.pds
  }

  /// Returns which of the account's keys signed a commit: by the PLC log, or without a valid one by
  /// the DID document; nil if neither names a key.
  package func judge(_ commit: Commit, now: UnixTime) -> SignatureVerdict? {
    if let plcLog, let log = try? PLCLog(plcLog.span, of: commit.did),
      let history = try? PLCHistory(validating: log, of: commit.did)
    {
      return history.judge(commit, now: now)
    }
    guard let didDocument, let document = try? DIDDocument(didDocument.span),
      document.signingKey != nil
    else { return nil }
    return document.judge(commit, now: now)
  }

  /// Makes sure that the PLC log, if there is one, is the account's, and leads back to its first
  /// operation; returns whether it says when operations were received.
  ///
  /// - Throws: ``BackupError`` for a log that is another account's, or does not hold; `PLCLogError`
  ///   for what is not a log.
  package func checkPLCLog(of did: DID) throws -> Bool {
    guard let plcLog else { return true }
    do {
      let log = try PLCLog(plcLog.span, of: did)
      _ = try PLCHistory(validating: log, of: did)
      return log.isAudit
    } catch PLCLogError.otherAccount(let other) {
      throw BackupError.otherAccount(other, expected: did.text)
    } catch let fault as PLCFault {
      throw BackupError.notGenuine("the PLC log of \(did) is not valid: \(fault)")
    }
  }
}
