internal import ATProtocol
internal import Files
internal import IPLD
internal import LibC
internal import SystemPackage

/// Checks whether a commit is an account's own: by the history of its keys, if that is known, and
/// otherwise by the key in its DID document.
///
/// An account that moved and has not written since has a commit that its former key signed, which
/// is as genuine as any. A commit signed with an unknown key is not genuine, whatever a server or
/// document says.
struct CommitVerifier: Sendable {
  private let did: DID
  /// The key in its DID document, or, if that names no usable one, the last that it named; nil if
  /// none is known.
  var key: VerificationKey?
  /// The history of its keys, checked back to the first operation; nil if it has none, or it could
  /// not be fetched.
  private let history: PLCHistory?
  /// The time, to recognise revisions in the future.
  private let now: UnixTime

  /// A verifier.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - key: the key in its DID document.
  ///   - log: its log in the PLC directory, if it has one.
  ///   - now: the moment, in RFC 3339 and UTC.
  /// - Throws: ``BackupError/notGenuine(_:)`` for a log that is not valid; ``BackupError`` if
  ///   `now` is not such a moment: without one nothing could be checked.
  init(did: DID, key: VerificationKey?, log: [UInt8]?, now: String) throws {
    guard let time = UnixTime(now) else {
      throw BackupError.system("read the clock: \(now)", EINVAL)
    }
    (self.did, self.key, self.now) = (did, key, time)
    do {
      history = try log.map { (log) throws in
        try PLCHistory(validating: PLCLog(log.span, of: did), of: did)
      }
    } catch {
      throw BackupError.notGenuine("the PLC log of \(did) is not valid: \(error)")
    }
  }

  /// Whether a key is known, so that a commit can be checked.
  var hasKey: Bool { key != nil || history.map { !$0.keyPeriods.isEmpty } ?? false }

  /// Makes sure that a commit is the account's own, as far as a key is known.
  ///
  /// - Throws: ``BackupError/notGenuine(_:)``.
  func check(_ commit: Commit) throws {
    guard commit.did == did else {
      throw BackupError.notGenuine("the server sent the repository of \(commit.did), not of \(did)")
    }
    if let history, !history.keyPeriods.isEmpty {
      let verdict = history.judge(commit, now: now)
      guard verdict.isGenuine else { throw BackupError.notGenuine("the commit is \(verdict)") }
      return
    }
    if let key, !commit.isSigned(by: key) {
      throw BackupError.notGenuine("the commit is not signed with the account's key \(key)")
    }
    // Even without a known key, a commit that no key can have signed is not stored.
    if let flaw = commit.flaw { throw flaw }
  }
}

/// A commit that a server showed as an account's, and that is not the account's own.
///
/// It is kept as evidence, which is not part of the archive: `NAME.refused.car` beside
/// `NAME.car.zst`, a CAR that has each such commit once and names all as roots, the latest last.
///
/// 1. Commits stay in it, up to ``maximumCount``; then the oldest is dropped.
/// 2. A file of that name that is not such a CAR is left alone.
struct RefusedCommit: Error, CustomStringConvertible {
  /// Why the commit is not genuine.
  let reason: String
  /// Its block.
  let block: Block

  var description: String { reason }

  /// How many are kept at most.
  private static let maximumCount = 64
  /// The longest file that is read as such a CAR, in bytes.
  private static let maximumLength = maximumCount << 20 | 1 << 20

  /// Keeps the commit beside an archive; returns a sentence for the user.
  func keep(beside archive: FilePath) -> String {
    let path = FileNaming.beside(archive, ".refused.car")
    do {
      var kept = AtomicFile.isTaken(path) ? try Self.read(path) : []
      if !kept.contains(where: { $0.cid == block.cid }) {
        kept = (kept + [block]).suffix(Self.maximumCount)
        var car: [UInt8] = []
        CARWriter.appendHeader(roots: kept.map(\.cid), to: &car)
        for block in kept { CARWriter.appendSection(block.cid, block.bytes.span, to: &car) }
        try AtomicFile.save(to: path, replacing: true) { [car] sink in try sink(car.span) }
      }
      return "the commit is kept in \(path) as evidence"
    } catch {
      return "the commit could not be kept as evidence: \(error)"
    }
  }

  private static func read(_ path: FilePath) throws -> [Block] {
    let file = try InputFile(path.string)
    guard file.count <= maximumLength else {
      throw BackupError.malformedDocument("\(path) is too large")
    }
    return try file.withBytes { bytes in
      let header = try CARHeader(bytes)
      var cursor = CARCursor(header: header, payload: 0..<bytes.count)
      var blocks: [Block] = []
      while let (section, cid) = try cursor.next(in: bytes) {
        blocks.append(Block(cid: cid, bytes: bytes.array(section.bodyRange)))
      }
      return blocks
    }
  }
}
