package import ATProtocol
package import Archive
internal import IPLD
package import Snapshots

/// What an archive holds about who an account is: the log of the PLC directory, checked back to its
/// first operation, and the DID documents, as they were received.
///
/// The newest log stands for all snapshots of the account, because a log only grows. It is read and
/// checked once, however many snapshots there are.
package struct IdentityEvidence: Sendable {
  /// A DID document: the number of the first snapshot that has it, when that was made, and the
  /// document; nil if what is stored is not one.
  package typealias Document = (snapshot: Int, createdAt: String, document: DIDDocument?)

  /// The account.
  package let did: DID
  /// The operations of a `did:plc`, proven from the DID on; nil without a log, or with an invalid
  /// one.
  package let history: PLCHistory?
  /// What speaks against the account's logs: that the newest breaks a rule, or an older one has an
  /// operation that the newest does not know.
  package let faults: [String]
  /// The documents, the oldest first, those that follow one another and are the same only once.
  package let documents: [Document]

  /// Evidence of a log that was received.
  ///
  /// - Throws: `PLCLogError` if it is not a log of this account.
  package init(of did: DID, log: [UInt8]) throws {
    self.did = did
    documents = []
    (history, faults) = Self.check(try PLCLog(log.span, of: did), of: did)
  }

  /// What an archive holds about an account.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - snapshots: all snapshots of the archive.
  ///   - reader: the archive.
  /// - Throws: `ArchiveError` and ``SnapshotError`` if a manifest or a document is damaged.
  package init(of did: DID, _ snapshots: SnapshotHistory, in reader: ArchiveReader) throws {
    self.did = did
    var documents: [Document] = []
    var logs: [CID] = []
    var last: CID?
    for entry in snapshots.entries where entry.did == did && entry.isVouched {
      let archived = try ArchivedSnapshot(entry.cid, in: reader)
      if let log = archived.snapshot.plcLog, logs.last != log { logs.append(log) }
      guard let link = archived.snapshot.didDocument, link != last else { continue }
      last = link
      let bytes = try archived.block(link).bytes
      documents.append((entry.number, entry.createdAt, try? DIDDocument(bytes.span)))
    }
    self.documents = documents
    (history, faults) = try Self.check(logs, of: did, in: reader)
  }

  /// The newest of some logs, checked, and whether the older ones agree with it.
  private static func check(_ logs: [CID], of did: DID, in reader: ArchiveReader) throws
    -> (PLCHistory?, [String])
  {
    guard let newest = logs.last else { return (nil, []) }
    func log(_ cid: CID) throws -> PLCLog {
      let block = try ArchivedSnapshot.block(cid, in: reader)
      return try PLCLog(block.bytes.span, of: did)
    }
    func operations(_ log: PLCLog) -> Set<CID> { Set(log.entries.compactMap(\.cid)) }
    do {
      var newestLog = try log(newest)
      // A log without times says no more than an older one with them that has its operations.
      for cid in logs.dropLast().reversed() where !newestLog.isAudit {
        let older = try log(cid)
        if older.isAudit, operations(newestLog).isSubset(of: operations(older)) {
          newestLog = older
        }
      }
      var (history, faults) = check(newestLog, of: did)
      let known = operations(newestLog)
      // One that leaves out what was taken back says nothing in lacking an operation.
      for older in newestLog.isAudit ? logs : [] {
        let unknown = try log(older).entries.compactMap(\.cid).first { !known.contains($0) }
        guard let unknown else { continue }
        history = nil
        faults.append(
          "an older PLC log has the operation \(unknown), which the newest log lacks: there are two histories"
        )
        break
      }
      return (history, faults)
    } catch let error as PLCLogError {
      return (nil, ["\(error)"])
    }
  }

  private static func check(_ log: PLCLog, of did: DID) -> (PLCHistory?, [String]) {
    do throws(PLCFault) {
      return (try PLCHistory(validating: log, of: did), [])
    } catch {
      return (nil, ["the PLC log is not valid: \(error)"])
    }
  }
}
