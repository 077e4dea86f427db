internal import ATProtocol
internal import Archive
internal import IPLD
internal import XRPC

/// A snapshot that is to be given back to a server: its CAR in a file, whole and checked, and the
/// blobs that its records refer to.
struct RestoreSource: Sendable {
  /// The snapshot.
  let archived: ArchivedSnapshot
  /// The commit.
  let commit: Commit
  /// How many records there are.
  let recordCount: Int
  /// The blobs that records refer to.
  let blobs: BlobTable
  /// The blobs whose losses are accepted.
  let accepted: Set<CID>
  /// The account that it is going to be: the snapshot's, or a new one.
  let did: DID
  /// The commit's CID.
  let head: CID
  /// The CAR, to be sent.
  let body: RequestBody

  /// How many bytes of the CAR are sent before their pages are let go of.
  private static let releaseInterval: UInt64 = 8 << 20

  /// Puts a snapshot's CAR together and checks all of it.
  ///
  /// - Throws: ``BackupError`` if it is not whole, or not as it came; `ArchiveError`.
  init(_ archived: ArchivedSnapshot, observer: @escaping Progress.Observer) throws {
    self.archived = archived
    let car = try RestoredRepository(archived, order: .exported, observer: observer)
    if let flaw = car.flaw { throw BackupError.carNotExact(flaw) }
    let checked = try CheckedRepository(car.mapped, archive: nil, observer: observer)
    let inspection = checked.inspection
    guard inspection.isComplete else {
      throw BackupError.malformedRepository(
        "the snapshot is not whole: \(inspection.missingNodes.count) tree nodes and \(inspection.missingRecordCount) records are missing in it, and no server takes such a repository"
      )
    }
    guard checked.commit.did == archived.snapshot.did else {
      throw BackupError.notGenuine(
        "the snapshot's commit is of \(checked.commit.did), not of \(archived.snapshot.did)")
    }
    commit = checked.commit
    recordCount = inspection.recordCount
    blobs = inspection.blobs
    accepted = Set(try archived.acceptances().keys)
    did = archived.snapshot.did
    head = archived.snapshot.commit
    body = RequestBody(byteCount: UInt64(car.mapped.count)) { offset, count in
      let piece = car.withBytes { bytes in
        bytes.extracting(Int(offset)..<Int(offset) + count).array
      }
      let end = offset + UInt64(count)
      if offset / Self.releaseInterval != end / Self.releaseInterval { car.releasePages() }
      return piece
    }
    car.releasePages()
    archived.reader.releasePages()
  }

  /// The records of the same snapshot as the repository of another account.
  init(_ other: RestoreSource, as did: DID, rewritesReferences: Bool) throws {
    let new = try NewRepository(
      of: other.archived, as: did, rewritesReferences: rewritesReferences)
    (archived, recordCount, accepted) = (other.archived, other.recordCount, other.accepted)
    (blobs, commit, head, body) = (other.blobs, new.commit, new.head, new.body)
    self.did = did
  }

  /// How long the CAR is, in bytes.
  var byteCount: UInt64 { body.byteCount }

  /// What a blob is to be sent as: the media type that records name.
  func mediaType(of blob: CID) -> String {
    Self.mediaType(blobs[blob]?.mimeType)
  }

  /// A media type that a record names, if it can be sent.
  static func mediaType(_ named: String?) -> String {
    let named = named ?? ""
    // It goes into a header field.
    let isUsable =
      named.contains("/") && named.utf8.allSatisfy { 0x21..<0x7f ~= $0 } && named.utf8.count <= 255
    return isUsable ? named : "application/octet-stream"
  }
}
