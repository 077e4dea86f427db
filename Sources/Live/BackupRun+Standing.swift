internal import ATProtocol
internal import Archive
internal import IPLD
internal import Snapshots
internal import Verification

/// What speaks against the account, and what is new about who it is.
extension BackupRun {
  /// The standing of a snapshot whose repository is the one of the snapshot before.
  func standingOfBase(_ base: ArchivedSnapshot) throws -> Standing {
    let before = base.snapshot.standing
    var standing = Standing()
    // The server has just named this commit as its newest, or was not asked.
    for doubt in before.doubts where doubt != .handle && (isFill || doubt != .behind) {
      standing.add(doubt, accepting: options.accepted)
    }
    if !options.accepted.isDisjoint(with: [.rollback, .fork]) {
      // What earlier versions and `pack` wrote does not say so itself.
      for disruption in try base.wholeHistory().disruptions
      where !disruption.isAccepted {
        standing.add(disruption.kind, accepting: options.accepted)
      }
    }
    return self.standing(after: standing)
  }

  /// A standing with what is to be said of the handle.
  func standing(after repository: Standing) -> Standing {
    var standing = repository
    let before = base?.snapshot.standing
    switch identity.isHandleConfirmed {
    case true?: break
    case false?:
      let isAcceptedStill =
        before?.accepted.contains(.handle) == true && base?.snapshot.handle == identity.handle
      standing.add(.handle, accepting: isAcceptedStill ? [.handle] : options.accepted)
    case nil:
      standing.takeHandle(from: before)
      if options.accepted.contains(.handle), standing.doubts.remove(.handle) != nil {
        standing.accepted.insert(.handle)
      }
    }
    return standing
  }

  /// What is new about who the account is, a sentence each.
  func identityChanges() throws -> [String] {
    guard let base else { return [] }
    var changes: [String] = []
    func note(_ what: String, _ old: String?, _ new: String?) {
      guard old != new else { return }
      changes.append("its \(what) is \(new ?? "not known") now, and was \(old ?? "not known")")
    }
    note("handle", base.snapshot.handle?.text, identity.handle?.text)
    guard let bytes = identity.document, let known = try base.readable({ try $0.didDocument() }),
      bytes != known
    else { return changes }
    do throws(DIDDocumentError) {
      let (old, new) = (try DIDDocument(known.span), try DIDDocument(bytes.span))
      note("server", old.pds, new.pds)
      note("key", old.signingKey?.didKey, new.signingKey?.didKey)
    } catch {
      // The older one is kept as it was received, and need not have been one that can be read.
    }
    return changes
  }

  /// Notes that the handle was confirmed, which no manifest says.
  func noteIdentity(_ snapshot: Snapshot) {
    guard identity.isHandleConfirmed == true else { return }
    snapshot.markIdentity(at: options.now(), in: target.path)
  }
}

extension ArchivedSnapshot {
  /// The last key that a DID document of the account named.
  func earlierKey() throws -> VerificationKey? {
    let history = try wholeHistory()
    let evidence = try IdentityEvidence(of: snapshot.did, history, in: history.reader)
    return evidence.documents.last { $0.document?.signingKey != nil }?.document?.signingKey
  }
}

extension AccountIdentity {
  /// Whether it says something that a snapshot does not say.
  func isNews(after snapshot: Snapshot) -> Bool {
    let isOther = { (document: [UInt8]?, known: CID?) in
      document.map { CID(codec: .raw, hashing: $0.span) != known } ?? false
    }
    return handle != snapshot.handle || isOther(document, snapshot.didDocument)
      || isOther(log, snapshot.plcLog)
  }
}
