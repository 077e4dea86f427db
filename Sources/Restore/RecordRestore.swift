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

  let archived: ArchivedSnapshot
  let repository: LaidOutRepository
  let server: DestinationServer
  private let replaces: Bool

  /// A restore of records of a snapshot.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - network: the way to servers.
  ///   - login: the account's password, or one for apps, and the code that came by mail.
  ///   - replaces: whether other records in their places are replaced.
  ///   - tell: called with what is waited for.
  ///   - asksForCode: asks for a code that came by mail.
  /// - Throws: ``BackupError``; what servers throw.
  package init(
    _ archived: ArchivedSnapshot, network: Network, _ login: OwnLogin, replaces: Bool,
    tell: @escaping @Sendable (RestoreEvent) -> Void,
    asksForCode: @Sendable (_ server: String, _ purpose: String) -> Secret?
  ) async throws {
    let server = try await DestinationServer.home(
      of: archived.snapshot.did, network, login, asking: asksForCode, tell: tell)
    try await self.init(archived, to: server, replaces: replaces)
  }

  init(_ archived: ArchivedSnapshot, to server: DestinationServer, replaces: Bool) async throws {
    (self.archived, self.server, self.replaces) = (archived, server, replaces)
    repository = try await onOwnThread { try LaidOutRepository(of: archived) }
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
    do throws(Unfit) { value = try Self.value(of: block) } catch { return .refused(error.what) }
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

  /// Why a server would not come to the same record.
  struct Unfit: Error { let what: String }

  /// What a record says, if JSON says all of it, so that the server comes to the same bytes.
  @discardableResult
  static func value(of block: Block) throws(Unfit) -> IPLDValue {
    let value: IPLDValue
    let isFit: Bool
    do {
      value = try DAGCBORDecoder.decode(block.bytes.span)
      isFit =
        try DAGCBOREncoder.encode(value) == block.bytes
        && DataModelJSON.decode(DataModelJSON.encode(value)) == value
    } catch {
      throw Unfit(what: "it cannot be read: \(error)")
    }
    guard isFit else { throw Unfit(what: "it is not in the form that a server would write") }
    guard value["$type"] != nil else {
      throw Unfit(what: "it has no $type, which a server would add")
    }
    return value
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
      return try await server.call(GetRecordCID(did: server.did, path: path))
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
    switch try await server.send(ref.cid, as: ref.mimeType, from: archived) {
    // The server may have what the archive does not; if not, it says so.
    case .success, .failure(.notHeld): return nil
    case .failure(let reason): return "its blob \(ref.cid): \(reason.sentence)"
    }
  }

  private func write(_ value: IPLDValue, at path: RecordPath, replacing present: CID?) async throws
    -> CID
  {
    guard let present else {
      return try await server.call(CreateRecord(did: server.did, path: path, record: value))
    }
    return try await server.call(
      PutRecord(did: server.did, path: path, record: value, replacing: present))
  }
}
