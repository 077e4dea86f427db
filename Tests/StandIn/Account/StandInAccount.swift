package import ATProtocol
package import IPLD
import Synchronization
import TestSupport

/// An account on a ``StandInPDS``: a repository with true signatures, blobs, a DID document and a
/// PLC log, which can change while it is served.
package final class StandInAccount: Sendable {
  /// What a server says about an account as a whole.
  package enum Status: String, Sendable, CaseIterable {
    /// Nothing special.
    case active
    /// Its owner has switched it off.
    case deactivated
    /// The server has taken it down.
    case takendown
    /// The server has suspended it.
    case suspended
    /// There is none any more.
    case deleted
  }

  /// A change of one record.
  package enum Write: Sendable {
    /// Writes a record, new or not.
    case put(path: String, record: IPLDMap)
    /// Writes bytes as a record, whatever they are.
    case putBytes(path: String, bytes: [UInt8])
    /// Deletes a record.
    case delete(path: String)
  }

  /// The DID.
  package let did: String
  /// What signs its commits.
  package let key: SigningKey
  /// What its commits are like.
  package let style: AccountStyle
  /// The DID document as it was received from elsewhere, except for the address of the server; nil
  /// to make one.
  let documentTemplate: IPLDValue?

  private let state: Mutex<AccountState>

  /// An account without records.
  ///
  /// - Parameters:
  ///   - name: what all follows from: the key, and the DID if none is given.
  ///   - handle: the handle; nil for one of the name under `example.com`.
  ///   - did: the DID; nil for a `did:plc` that follows from the genesis operation.
  package init(
    _ name: String, handle: String? = nil, did: String? = nil, style: AccountStyle = AccountStyle()
  ) throws {
    let handle = handle ?? "\(name).example.com"
    key = SigningKey(style.curve, seed: "carpack stand-in: \(name)")
    self.style = style
    documentTemplate = nil
    let operations = try PLCOperations(name: name, handle: handle, key: key)
    self.did = did ?? operations.did
    state = Mutex(AccountState(handle: handle, operations: operations))
    try commit([])
  }

  /// An account as it was received: its repository, later versions of it, its blobs, its documents.
  ///
  /// - Parameters:
  ///   - cars: the repository and what ``advance()`` makes of it.
  ///   - key: what further commits are signed with.
  ///   - rotation: what further operations of its DID are signed with.
  package init(
    cars: [[UInt8]], blobs: [BlobContent], handle: String, document: IPLDValue, auditLog: String,
    key: SigningKey, rotation: SigningKey
  ) throws {
    guard let did = document["id"]?.string, let first = cars.first else {
      throw Malformed(what: "an account needs a DID document and a CAR")
    }
    self.did = did
    self.key = key
    style = AccountStyle()
    documentTemplate = document
    var state = AccountState(
      handle: handle, operations: try PLCOperations(log: auditLog, rotation: rotation))
    for blob in blobs {
      state.blobs[blob.cid] = blob
      state.rows[blob.cid] = AccountState.BlobRow(type: blob.mimeType, size: blob.size)
    }
    state.pending = Array(cars.dropFirst())
    try state.take(car: first)
    self.state = Mutex(state)
  }

  /// An account that a server makes for a DID that there is, with an empty repository.
  init(
    did: String, handle: String, key: SigningKey, rotation: SigningKey, password: String,
    email: String
  ) throws {
    self.did = did
    self.key = key
    style = AccountStyle()
    documentTemplate = nil
    var operations = try PLCOperations(name: did, handle: handle, key: key)
    operations.rotation = rotation
    var state = AccountState(handle: handle, operations: operations)
    (state.password, state.email, state.status) = (password, email, .deactivated)
    self.state = Mutex(state)
    try commit([])
  }

  /// Something an account was to be made of is not what it should be.
  package struct Malformed: Error, CustomStringConvertible {
    let what: String
    /// What a person reads.
    package var description: String { what }
  }

  // MARK: What it is now

  /// The handle.
  package var handle: String {
    get { state.withLock { $0.handle } }
    set { state.withLock { $0.handle = newValue } }
  }

  /// What its owner logs in with.
  package var password: String {
    get { state.withLock { $0.password } }
    set { state.withLock { $0.password = newValue } }
  }

  /// What its owner alone is given: the answers of each method, the first for no cursor, each
  /// further one for its number as the cursor.
  package var privatePages: [String: [String]] {
    get { state.withLock { $0.privatePages } }
    set { state.withLock { $0.privatePages = newValue } }
  }

  /// The PLC log as JSON.
  package var auditLog: String { state.withLock { $0.operations.auditLog } }

  /// The PLC log, which ends with an operation that names the server and the handle as they are
  /// now.
  ///
  /// - Parameter server: the server that it is on, where it names no other.
  package func auditLog(on server: String) throws -> String {
    try state.withLock { state in
      var claims = state.operations.now
      (claims.handle, claims.server) = (state.handle, state.endpoint ?? server)
      if did == state.operations.did, claims != state.operations.now {
        try state.operations.append(claims)
      }
      return state.operations.auditLog
    }
  }

  /// The log of the account in the PLC directory, with a tombstone at its end.
  package func tombstonedLog() throws -> String {
    try state.withLock { try $0.operations.tombstoned().auditLog }
  }

  /// Has the PLC log name another key from a time on.
  func name(_ key: SigningKey, at time: String) throws {
    try state.withLock { state in
      var claims = state.operations.now
      claims.key = "did:key:" + key.multikey
      try state.operations.append(claims, at: time)
    }
  }

  /// What the server says about it.
  package var status: Status {
    get { state.withLock { $0.status } }
    set { state.withLock { $0.status = newValue } }
  }

  /// The address of its server that the DID document names; nil for the server it is on.
  package var endpoint: String? {
    get { state.withLock { $0.endpoint } }
    set { state.withLock { $0.endpoint = newValue } }
  }

  /// The revision of the repository.
  package var rev: TID { state.withLock { $0.rev! } }

  /// The commit of the repository.
  package var head: CID { state.withLock { $0.commit! } }

  /// The paths of its records, sorted.
  package var paths: [String] {
    state.withLock { $0.records.keys.map { String(decoding: $0, as: UTF8.self) } }.sorted()
  }

  /// The CID of the record with this path; nil if there is none.
  package func recordCID(of path: String) -> CID? {
    state.withLock { $0.records[Array(path.utf8)]?.cid }
  }

  /// What the record with this path says; nil if there is none.
  package func record(_ path: String) -> IPLDValue? {
    let bytes = state.withLock { state in
      state.records[Array(path.utf8)].flatMap { state.blocks[$0.cid]?.bytes }
    }
    guard let bytes else { return nil }
    do { return try DAGCBORDecoder.decode(bytes.span) } catch { return nil }
  }

  /// The blobs that its records refer to, whether they are there or not.
  package var referencedBlobs: Set<CID> { state.withLock { $0.referencedBlobs(since: nil) } }

  /// The blobs that are there.
  package var blobs: [CID: BlobContent] { state.withLock { $0.blobs } }

  /// The repository as a server with this behaviour gives it.
  ///
  /// - Parameter since: the revision that the client has.
  package func car(_ behaviour: Behaviour = Behaviour(), since: TID? = nil) -> [UInt8] {
    var bytes: [UInt8] = []
    let image = CARImage(snapshot(), since: since, behaviour)
    do {
      try image.forEachPiece { piece in
        for index in piece.indices { bytes.append(piece[index]) }
      }
    } catch {
      preconditionFailure("nothing here fails: \(error)")
    }
    return bytes
  }

  /// What is stored of it, as it is now.
  func snapshot() -> AccountState { state.withLock { $0 } }

  // MARK: What changes it

  /// Uploads a blob.
  ///
  /// - Parameter referenced: false if no record will refer to it; some servers list it anyway.
  package func upload(_ blob: BlobContent, referenced: Bool = true) {
    state.withLock {
      $0.blobs[blob.cid] = blob
      $0.rows[blob.cid] = AccountState.BlobRow(type: blob.mimeType, size: blob.size)
      if !referenced { $0.unreferenced.insert(blob.cid) }
    }
  }

  /// Loses a blob, which the records still refer to.
  package func lose(_ cid: CID) {
    state.withLock {
      $0.blobs[cid] = nil
      $0.rows[cid] = nil
    }
  }

  /// Changes what is stored of it.
  func change<Value>(_ body: (inout AccountState) throws -> Value) rethrows -> Value {
    try state.withLock { try body(&$0) }
  }

  /// Writes a post that shows blobs, uploads these, and returns how it can be written.
  package func post(_ rkey: String, _ text: String, showing blobs: [BlobContent] = []) -> Write {
    for blob in blobs { upload(blob) }
    let images = blobs.map { blob -> IPLDValue in
      .map([
        "alt": .string(""),
        "image": .map([
          "$type": .string("blob"), "ref": .link(blob.cid), "mimeType": .string(blob.mimeType),
          "size": .integer(Int128(blob.size)),
        ]),
      ])
    }
    var record: IPLDMap = [
      "$type": .string("app.bsky.feed.post"), "text": .string(text),
      "createdAt": .string("2025-01-01T00:00:00.000Z"),
    ]
    if !images.isEmpty {
      record["embed"] = .map([
        "$type": .string("app.bsky.embed.images"), "images": .array(images),
      ])
    }
    return .put(path: "app.bsky.feed.post/\(rkey)", record: record)
  }

  /// Makes a commit of changes.
  package func commit(_ writes: [Write]) throws {
    try state.withLock { state in
      var bodies: [[UInt8]: Block] = [:]
      for (path, record) in state.records {
        bodies[path] = Block(cid: record.cid, bytes: state.blocks[record.cid]?.bytes ?? [])
      }
      for write in writes {
        switch write {
        case .put(let path, let record):
          let bytes = try DAGCBOREncoder.encode(.map(record))
          bodies[Array(path.utf8)] = Block(
            cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
        case .putBytes(let path, let bytes):
          bodies[Array(path.utf8)] = Block(
            cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
        case .delete(let path): bodies[Array(path.utf8)] = nil
        }
      }
      var builder = MSTBuilder()
      var nodes: [Block] = []
      for (path, body) in bodies.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
        builder.append(key: path, value: body.cid) { nodes.append($0) }
      }
      let data = builder.finish { nodes.append($0) }
      let rev = nextRevision(after: state.rev)
      let commit = try signedCommit(data: data, rev: rev, previous: state.commit)
      state.replace(commit: commit, nodes: nodes, data: data, records: bodies, rev: rev)
    }
  }

  /// Is what it was before the last commit, as where a server is restored from a copy.
  package func goBack() {
    state.withLock { state in
      guard var previous = state.previous else { return }
      (previous.operations, previous.handle) = (state.operations, state.handle)
      previous.endpoint = state.endpoint
      state = previous
    }
  }

  /// Goes on to the account's next revision: the next CAR that it came with, or else a commit that
  /// deletes the oldest post and writes three new ones, of which one shows a new blob.
  package func advance() throws {
    let step = try state.withLock { state -> Int? in
      if let car = state.pending.first {
        state.pending.removeFirst()
        try state.take(car: car)
        return nil
      }
      state.advances += 1
      return state.advances
    }
    guard let step else { return }
    var writes: [Write] = []
    if let oldest = paths.first(where: { $0.hasPrefix("app.bsky.feed.post/") }) {
      writes.append(.delete(path: oldest))
    }
    var generator = SeededGenerator(seed: UInt64(step) &* 0x9e37_79b9)
    for key in key.sign(Array("\(did) \(step)".utf8)).prefix(8) {
      generator = SeededGenerator(seed: generator.next() ^ UInt64(key))
    }
    for number in 0..<3 {
      let blobs = number == 0 ? [BlobContent(noise: generator.next(), size: 40_000)] : []
      writes.append(
        post(
          TID(integer: UInt64(1_760_000_000_000_000 + step * 1000 + number) << 10).text,
          "post \(number) of change \(step)", showing: blobs))
    }
    try commit(writes)
  }

  /// A commit that is signed.
  func signedCommit(data: CID, rev: TID, previous: CID?, spoilt: Bool = false) throws -> Block {
    var map: IPLDMap = [
      "did": .string(did), "version": .integer(3), "data": .link(data), "rev": .string(rev.text),
      "prev": style.namesPreviousCommit ? previous.map { .link($0) } ?? .null : .null,
    ]
    var signature = key.sign(try DAGCBOREncoder.encode(.map(map)))
    if spoilt { signature[10] ^= 1 }
    map["sig"] = .bytes(signature)
    let bytes = try DAGCBOREncoder.encode(.map(map))
    return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
  }

  private func nextRevision(after rev: TID?) -> TID {
    if style.countsRevisions {
      // As arroba has them: a counter where the microseconds belong, and a clock's number.
      return TID(integer: ((rev?.microseconds ?? 0) + 1) << 10 | 0x2b)
    }
    let first: UInt64 = 1_750_000_000_000_000
    return TID(integer: (rev.map { $0.microseconds + 3_600_000_000 } ?? first) << 10 | 7)
  }
}

extension AccountState {
  /// Takes up the repository that a CAR holds.
  mutating func take(car: [UInt8]) throws {
    var bytes: [UInt8]? = car
    var reader = CARReader<Never>(limits: .mapped) { () throws(Never) -> [UInt8]? in
      defer { bytes = nil }
      return bytes
    }
    var found: [CID: Block] = [:]
    let header = try reader.readHeader()
    while let block = try reader.next() { found[block.cid] = block }
    guard let root = header.roots.first, let commitBlock = found[root] else {
      throw StandInAccount.Malformed(what: "the CAR has no commit")
    }
    let commit = try Commit(commitBlock.bytes.span)
    guard let rev = commit.rev else {
      throw StandInAccount.Malformed(what: "the commit has no revision")
    }
    var nodes: [Block] = []
    var bodies: [[UInt8]: Block] = [:]
    var open = [commit.data]
    while let cid = open.popLast() {
      guard let block = found[cid] else {
        throw StandInAccount.Malformed(what: "the CAR lacks \(cid)")
      }
      nodes.append(block)
      let node = try MSTNode(block.bytes.span)
      if let left = node.left { open.append(left) }
      var key: [UInt8] = []
      for entry in node.entries {
        key = Array(key.prefix(entry.prefixLength)) + node.suffixes[entry.suffix]
        guard let body = found[entry.value] else {
          throw StandInAccount.Malformed(what: "the CAR lacks \(entry.value)")
        }
        bodies[key] = body
        if let right = entry.right { open.append(right) }
      }
    }
    replace(commit: commitBlock, nodes: nodes, data: commit.data, records: bodies, rev: rev)
  }
}
