internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import LibC
internal import Snapshots
internal import SystemPackage
internal import XRPC

/// The journal of a restore, `NAME.restore.json` beside the archive: what was done and what was
/// answered, so that the same command resumes the restore, and a person can see how far it is.
///
/// It belongs to an account and a server, which its DID identifies; a new account has its own. If
/// the file belongs to another restore, the journal is in `NAME.2.restore.json`, and so on.
///
/// ```
/// {"carpackRestore":1, "did":…, "from":…, "to":…, "server":…, "handle":…, "asNew":…, "newDID":…,
///  "manifest":…, "commit":…, "steps":[{"step":…, "at":…, "answer":…}],
///  "operations":[{"cid":…, "purpose":…, "operation":…}]}
/// ```
/// 1. It holds no secret: no password, token, code or private key.
/// 2. What cannot be undone is in it before it is sent.
/// 3. It is a memory, and no proof: servers and directory are asked what was done.
struct RestoreJournal {
  static let version = 1

  let path: FilePath
  /// The journal's file, locked, so that no other run restores from the archive; nil if nothing was
  /// written yet.
  private var file: FileStorage?
  var did: DID
  var from: String?
  var to: String
  /// The DID of the server; nil in a journal of version 0.1, which goes by the URL.
  var server: DID?
  var handle: Handle?
  /// Whether a new account is made of the archive.
  private(set) var isOfNewAccount = false
  /// The new account, once it is made.
  var newDID: DID?
  var manifest: CID?
  var commit: CID
  private var entries: [(step: String, at: String, answer: String)] = []
  /// The signed operations that were sent, or were to be, and the steps that they are for.
  private var operations: [(purpose: RestoreStep, operation: IPLDValue)] = []
  /// Whether createAccount may have been sent, whatever its result.
  var hasAskedForAccount = false
  /// How many of the snapshot's blobs were read back and are equal, in the order of their first
  /// references.
  var comparedCount = 0

  init(path: FilePath, did: DID, from: String?, to: String, manifest: CID?, commit: CID) {
    (self.path, self.did, self.from, self.to) = (path, did, from, to)
    (self.manifest, self.commit) = (manifest, commit)
  }

  /// How many journals an archive has at most.
  private static let maximumCount = 100_000

  /// The journal of a restore from an archive: the one that was written before, or a new one.
  ///
  /// - Parameters:
  ///   - archive: the archive's file.
  ///   - snapshot: what is restored.
  ///   - server: the server that it is restored to.
  ///   - asNew: whether a new account is made of it.
  ///   - locked: whether the run is going to write it.
  /// - Throws: ``RestoreError/busy(_:)`` if another run has it; ``BackupError`` for a file that
  ///   cannot be read, or is none.
  static func of(
    _ archive: FilePath, _ snapshot: ArchivedSnapshot, to server: RestoreServer, asNew: Bool,
    locked: Bool = true
  ) throws -> RestoreJournal {
    let (did, manifest, commit) =
      (snapshot.snapshot.did, snapshot.cid, snapshot.snapshot.commit)
    for number in 1...maximumCount {
      let ending = number == 1 ? ".restore.json" : ".\(number).restore.json"
      let path = FileNaming.beside(archive, ending)
      guard let found = try RestoreJournal(reading: path) else {
        var new = RestoreJournal(
          path: path, did: did, from: nil, to: server.url, manifest: manifest, commit: commit)
        (new.server, new.isOfNewAccount) = (server.facts.did, asNew)
        return new
      }
      let isOfServer =
        found.server.map { $0 == server.facts.did }
        ?? AccountRestore.isSame(found.to, server.url)
      guard found.did == did, isOfServer, found.isOfNewAccount == asNew,
        var own = locked ? try RestoreJournal(at: path) : found
      else { continue }
      own.server = server.facts.did
      own.begin(manifest: manifest, commit: commit)
      return own
    }
    throw BackupError.system("write \(FileNaming.beside(archive, ".restore.json"))", EEXIST)
  }

  /// What was written before, locked; nil if there is nothing.
  ///
  /// - Throws: ``RestoreError/busy(_:)`` if another run has it; ``BackupError`` for a file that
  ///   cannot be read, or is none.
  init?(at path: FilePath) throws {
    guard AtomicFile.isTaken(path) else { return nil }
    let file: FileStorage
    do {
      file = try FileStorage.open(path)
    } catch let error as ArchiveError
      where error.reason == .locked || error.reason == .changedMeanwhile
    {
      throw RestoreError.busy(path.string)
    }
    try self.init(reading: path)
    self.file = file
  }

  /// The journal that was written before, only to be read; nil if there is none.
  private init?(reading path: FilePath) throws {
    guard let bytes = try AtomicFile.read(path) else { return nil }
    func malformed(_ why: String) -> BackupError {
      .malformedDocument("\(path) is not the journal of a restore: \(why)")
    }
    let json: IPLDValue
    do throws(JSONError) { json = try DataModelJSON.decode(bytes) } catch {
      throw malformed("\(error)")
    }
    guard json["carpackRestore"]?.integer == Self.version else {
      throw malformed("it does not say that it is one, or is of a later version")
    }
    let answer = Answer(json)
    do throws(AnswerFault) {
      self.init(
        path: path, did: try answer.identifier("did", DID.self), from: json["from"]?.string,
        to: try answer.text("to"), manifest: answer.optionalCID("manifest"),
        commit: try answer.cid("commit"))
    } catch {
      throw malformed(error.what)
    }
    server = answer.optionalIdentifier("server", DID.self)
    handle = answer.optionalIdentifier("handle", Handle.self)
    newDID = answer.optionalIdentifier("newDID", DID.self)
    // Earlier versions wrote only the DID.
    isOfNewAccount = json["asNew"] == .boolean(true) || newDID != nil
    hasAskedForAccount = json["askedForAccount"] == .boolean(true)
    comparedCount = max(0, json["comparedBlobs"]?.integer ?? 0)
    for item in json["steps"]?.array ?? [] {
      func text(_ key: String) -> String { item[key]?.string ?? "" }
      entries.append((text("step"), text("at"), text("answer")))
    }
    for item in json["operations"]?.array ?? [] {
      guard let purpose = item["purpose"]?.string.flatMap(RestoreStep.init),
        let operation = item["operation"]
      else { throw malformed("an operation in it has no purpose") }
      operations.append((purpose, operation))
    }
  }

  /// Whether a step was noted as done.
  func has(_ step: RestoreStep) -> Bool { entries.contains { $0.step == step.rawValue } }

  /// Notes that a step is done, and saves that.
  mutating func note(_ step: RestoreStep, _ answer: String, at time: String) throws {
    entries.removeAll { $0.step == step.rawValue }
    entries.append((step.rawValue, time, answer))
    try save()
  }

  /// Forgets what was done with another snapshot: the repository and what follows from it.
  mutating func begin(manifest: CID?, commit: CID) {
    guard commit != self.commit || manifest != self.manifest else { return }
    (self.manifest, self.commit) = (manifest, commit)
    comparedCount = 0
    let kept: [RestoreStep] = [.server, .signingKey, .account]
    entries.removeAll { entry in !kept.contains { $0.rawValue == entry.step } }
  }

  /// The operation of a purpose that was signed last.
  func operation(for purpose: RestoreStep) -> IPLDValue? {
    operations.last { $0.purpose == purpose }?.operation
  }

  /// Keeps an operation, before it is sent.
  mutating func keep(_ operation: IPLDValue, for purpose: RestoreStep) throws {
    guard !operations.contains(where: { $0.purpose == purpose && $0.operation == operation })
    else { return }
    operations.append((purpose, operation))
    try save()
  }

  /// Saves the journal.
  ///
  /// - Throws: ``BackupError/system(_:_:)``; ``RestoreError/busy(_:)`` if another run has begun.
  mutating func save() throws {
    var json = JSONWriter(pretty: true)
    json.beginObject()
    json.field("carpackRestore", Self.version)
    json.field("did", did.text)
    json.field("from", from)
    json.field("to", to)
    json.field("server", server?.text)
    json.field("handle", handle?.text)
    if isOfNewAccount { json.field("asNew", true) }
    if let newDID { json.field("newDID", newDID.text) }
    json.field("manifest", manifest.map { "\($0)" })
    json.field("commit", "\(commit)")
    json.field("askedForAccount", hasAskedForAccount)
    json.field("comparedBlobs", comparedCount)
    json.beginArray("steps")
    for entry in entries {
      json.beginObject()
      json.field("step", entry.step)
      json.field("at", entry.at)
      json.field("answer", entry.answer)
      json.endObject()
    }
    json.endArray()
    json.beginArray("operations")
    for operation in operations {
      json.beginObject()
      json.field("purpose", operation.purpose.rawValue)
      json.key("operation")
      operation.operation.writeJSON(to: &json)
      json.endObject()
    }
    json.endArray()
    json.endObject()
    json.newline()
    let text = json.takeBytes()
    do {
      file = try AtomicFile.save(to: path, replacing: file != nil, isPrivate: true) {
        try $0(text.span)
      }
    } catch BackupError.system(_, Errno.fileExists.rawValue) {
      throw RestoreError.busy(path.string)
    }
  }
}
