package import ATProtocol
internal import Archive
internal import Files
package import IPLD
package import Snapshots
package import XRPC

/// Puts single records of a snapshot back, and the blobs that they refer to, into the account that
/// they are of: with the same keys, the same values and therefore the same CIDs.
package struct RecordRestore {
  /// What came of one record.
  package enum Outcome: Sendable, Equatable {
    /// It was written.
    case written
    /// It was there, with this very CID.
    case there
    /// Another record is in its place, and was left alone.
    case occupied(CID)
    /// It was not written: why.
    case refused(String)

    /// What a person reads.
    package var sentence: String {
      switch self {
      case .written: "written"
      case .there: "there already"
      case .occupied(let cid): "another record is there (\(cid)); --overwrite replaces it"
      case .refused(let why): "not written: \(why)"
      }
    }

    /// A word for a script.
    package var word: String {
      switch self {
      case .written: "written"
      case .there: "there"
      case .occupied: "occupied"
      case .refused: "refused"
      }
    }
  }

  private let archived: ArchivedSnapshot
  private let repository: LaidOutRepository
  private let client: XRPCClient
  private let target: RestoreTarget
  private let replaces: Bool

  /// A restore of records of a snapshot.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - network: the way to servers.
  ///   - password: the account's, or one for apps.
  ///   - code: the code that came by mail for logging in.
  ///   - replaces: whether other records in their places are replaced.
  ///   - tell: is told what is waited for.
  ///   - asksForCode: asks for a code that came by mail.
  /// - Throws: ``BackupError``; what servers throw.
  package init(
    _ archived: ArchivedSnapshot, network: Network, password: Secret, code: Secret?,
    replaces: Bool, tell: @escaping @Sendable (RestoreEvent) -> Void,
    asksForCode: @Sendable (_ server: String, _ purpose: String) -> Secret?
  ) async throws {
    (self.archived, self.replaces) = (archived, replaces)
    repository = try await onOwnThread { try LaidOutRepository(of: archived) }
    let did = archived.snapshot.did
    let identity = try await IdentityResolver(network: network).resolve(
      .did(did), confirmingHandle: false)
    guard let url = identity.pds else { throw BackupError.noServer(did.text) }
    let session = try await Session.begin(
      service: url, network: network, did: did, password: password, code: code,
      asking: asksForCode)
    client = XRPCClient(service: url, network: network, session: session)
    target = RestoreTarget(client: client, did: did) { tell(.waiting(seconds: $0, why: $1)) }
  }

  /// The same, with what is there already.
  init(
    _ archived: ArchivedSnapshot, repository: LaidOutRepository, target: RestoreTarget,
    replaces: Bool
  ) {
    (self.archived, self.repository, self.replaces) = (archived, repository, replaces)
    (self.target, client) = (target, target.client)
  }

  /// Puts one back.
  ///
  /// - Throws: ``BackupError/notFound(_:)`` for one that the snapshot does not have; what the server
  ///   throws that is not about this record.
  package func restore(_ path: RecordPath) async throws -> Outcome {
    guard let block = try repository.record("\(path)") else {
      throw BackupError.notFound("\(path)")
    }
    let value: IPLDValue
    switch Self.value(of: block) {
    case .failure(let why): return .refused(why.what)
    case .success(let found): value = found
    }
    let present = try await cid(at: path)
    if present == block.cid { return .there }
    if let present, !replaces { return .occupied(present) }
    do {
      for ref in try Self.blobs(of: block) {
        if let why = try await send(ref) { return .refused(why) }
      }
      let written = try await write(value, at: path, replacing: present)
      return written == block.cid
        ? .written : .refused("the server made another record of it, \(written)")
    } catch let error as XRPCError where [400, 413, 500].contains(error.status) {
      // Cut off on the way back, it may have been written.
      if error.status == 500, try await cid(at: path) == block.cid { return .written }
      return .refused("\(error)")
    }
  }

  private struct Unfit: Error { let what: String }

  /// What a record says, if JSON says all of it, so that the server comes to the same bytes.
  private static func value(of block: Block) -> Result<IPLDValue, Unfit> {
    do {
      let value = try DAGCBORDecoder.decode(block.bytes.span)
      guard try DAGCBOREncoder.encode(value) == block.bytes,
        try DataModelJSON.decode(DataModelJSON.encode(value)) == value
      else { return .failure(Unfit(what: "it is not in the form that a server would write")) }
      guard value["$type"] != nil else {
        return .failure(Unfit(what: "it has no $type, which a server would add"))
      }
      return .success(value)
    } catch {
      return .failure(Unfit(what: "it cannot be read: \(error)"))
    }
  }

  /// Why a server would not come to the same record; nil if it would.
  static func whyUnfit(_ block: Block) -> String? {
    if case .failure(let unfit) = value(of: block) { unfit.what } else { nil }
  }

  static func blobs(of block: Block) throws -> [BlobRef] {
    var refs: [BlobRef] = []
    var scanner = BlobRefScanner(profile: .dagCBOR)
    _ = try scanner.scan(block.bytes.span, found: { refs.append($0) })
    return refs
  }

  /// The CID of the record that the server has there.
  func cid(at path: RecordPath) async throws -> CID? {
    do {
      let query = GetRecordCID(did: target.did, path: path)
      return try await target.patiently { try await client.call(query) }
    } catch let error as XRPCError
      where error.status == 404
      || error.declared(GetRecordCID.DeclaredError.self) == .recordNotFound
      || (error.status == 400 && error.name == "InvalidRequest")
    {
      return nil
    }
  }

  /// Sends a blob; answers why not, if it cannot be.
  private func send(_ ref: BlobRef) async throws -> String? {
    guard !ref.isLegacy else {
      return "it refers to a blob in the form of 2022, which no server takes any more"
    }
    let archived = archived
    let length: UInt64
    switch archived.state(of: ref.cid) {
    case .held(let found): length = found
    case .missing: return nil  // The server may have it; if not, it says so.
    case .damaged(let why): return "its blob \(ref.cid) is damaged in the archive: \(why)"
    }
    let body = try await RequestBody.blob(ref.cid, of: length, in: archived)
    let upload = UploadBlob(body, contentType: RestoreSource.mediaType(ref.mimeType))
    let answer = try await target.patiently { try await client.upload(upload) }
    do throws(AnswerFault) {
      let named = try UploadBlob.cid(in: answer)
      return named == ref.cid ? nil : "the server calls its blob \(named)"
    } catch {
      return error.what
    }
  }

  private func write(_ value: IPLDValue, at path: RecordPath, replacing present: CID?) async throws
    -> CID
  {
    let did = target.did
    guard let present else {
      return try await target.patiently {
        try await client.call(CreateRecord(did: did, path: path, record: value), as: nil)
      }
    }
    return try await target.patiently {
      try await client.call(
        PutRecord(did: did, path: path, record: value, replacing: present), as: nil)
    }
  }
}
