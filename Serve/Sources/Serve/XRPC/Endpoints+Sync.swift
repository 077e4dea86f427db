import ATProtocol
import Archive
import IPLD
import NIOCore
import NIOHTTP1
import Snapshots

/// `com.atproto.sync`: repositories, blocks and blobs as they are.
extension Endpoints {
  private static let carType = "application/vnd.ipld.car"
  /// How many blocks may be requested at once.
  private static let maximumBlocks = 1000

  func latestCommit(_ parameters: Parameters) throws -> Response {
    let account = try account(parameters)
    return .json { json in
      json.field("cid", "\(account.entry.commit)")
      json.field("rev", account.rev)
    }
  }

  func repoStatus(_ parameters: Parameters) throws -> Response {
    let account = try account(parameters)
    return .json { json in
      json.field("did", account.did.text)
      json.field("active", true)
      json.field("rev", account.rev)
    }
  }

  func listRepos(_ parameters: Parameters) throws -> Response {
    let limit = try parameters.limit(500, upTo: 1000)
    let cursor = parameters["cursor"]
    let accounts = shelf.accounts.drop { account in cursor.map { account.did.text <= $0 } ?? false }
    let page = accounts.prefix(limit)
    return .json { json in
      if page.count < accounts.count, let last = page.last { json.field("cursor", last.did.text) }
      json.key("repos")
      json.beginArray()
      for account in page {
        json.beginObject()
        json.field("did", account.did.text)
        json.field("head", "\(account.entry.commit)")
        json.field("rev", account.rev)
        json.field("active", true)
        json.endObject()
      }
      json.endArray()
    }
  }

  // MARK: Repositories

  func getRepo(_ parameters: Parameters, _ request: Request) async throws -> Response {
    let account = try account(parameters)
    let snapshot = try account.snapshot()
    if let since = parameters["since"], let base = try earlier(account, at: since) {
      return try await changes(in: account, snapshot, since: base)
    }
    let car = try await repositories.restored(snapshot, account.entry.cid)
    guard car.isExact else {
      throw XRPCFault(
        "InternalServerError",
        "the repository cannot be assembled, because the archive is damaged: \(car.flaw ?? "")",
        status: .internalServerError)
    }
    let length = car.withBytes { $0.count }
    let budget = budget
    var headers = headers(Self.carType, account)
    // The same manifest gives the same CAR, bit for bit.
    headers[.eTag] = "\"\(account.entry.cid)\""
    return .ranged(UInt64(length), request, headers) { range, writer in
      try await budget.send(Int(range.lowerBound)..<Int(range.upperBound), to: writer) {
        part, buffer in
        car.withBytes { buffer.append($0.extracting(part)) }
        budget.hasRead(part.count, release: car.releasePages)
      }
    }
  }

  /// The snapshot of an account with a revision, if one of the archives has it.
  ///
  /// Another one would not do: what is between it and that revision may have been deleted and be
  /// there again.
  private func earlier(_ account: ServedAccount, at rev: String) throws -> ArchivedSnapshot? {
    for archive in [account.archive] + shelf.archives {
      let entry = archive.history.entries.last { $0.did == account.did && $0.rev?.text == rev }
      if let entry { return try ArchivedSnapshot(entry.cid, in: archive.reader) }
    }
    return nil
  }

  private func changes(
    in account: ServedAccount, _ snapshot: ArchivedSnapshot, since base: ArchivedSnapshot
  ) async throws -> Response {
    let new = try await repositories.laidOut(snapshot, account.entry.cid)
    let old = try await repositories.laidOut(base, base.cid ?? account.entry.cid)
    // What is not all there cannot be told from what was deleted.
    guard new.isWhole, old.isWhole else {
      throw XRPCFault.missing("a part of the repository, so what changed since then is not known")
    }
    let key = "changed in \(account.entry.cid) since \(base.cid ?? account.entry.cid)"
    let cids = try await threads.run(key) { new.blocks(notIn: old) }
    return blocks(cids, of: new, account)
  }

  /// A CAR with the commit as its root, and these blocks.
  private func blocks(
    _ cids: [CID], of repository: LaidOutRepository, _ account: ServedAccount
  ) -> Response {
    let (budget, threads) = (budget, threads)
    let commit = account.entry.commit
    return Response(
      status: .ok, headers: headers(Self.carType, account),
      body: .written(length: nil) { writer in
        try await withTaskExecutorPreference(threads) {
          var header: [UInt8] = []
          CARWriter.appendHeader(roots: [commit], to: &header)
          var buffer = ByteBuffer(bytes: header)
          for cid in cids {
            _ = repository.withBlock(cid) { body in
              var prefix: [UInt8] = []
              CARWriter.appendPrefix(cid, bodyLength: UInt64(body.count), to: &prefix)
              buffer.writeBytes(prefix)
              buffer.append(body)
            }
            if buffer.readableBytes >= budget.pieceLength {
              budget.hasRead(buffer.readableBytes, release: repository.releasePages)
              try await writer.write(buffer)
              buffer = ByteBuffer()
              try await writer.pause()
            }
          }
          try await writer.write(buffer)
        }
      })
  }

  func getBlocks(_ parameters: Parameters) async throws -> Response {
    let account = try account(parameters)
    let texts = parameters.all("cids")
    guard !texts.isEmpty else {
      throw XRPCFault.invalid("Params must have the property \"cids\"")
    }
    guard texts.count <= Self.maximumBlocks else {
      throw XRPCFault.invalid("no more than \(Self.maximumBlocks) blocks at once")
    }
    let cids = try texts.map(Parameters.cid)
    let repository = try await repository(account)
    let missing = cids.filter { repository.withBlock($0, { _ in }) == nil }
    guard missing.isEmpty else {
      throw XRPCFault(
        "BlockNotFound", "Could not find cids: \(missing.map { "\($0)" }.joined(separator: ", "))")
    }
    var car: [UInt8] = []
    // As the reference server does: a CAR of blocks has no root.
    CARWriter.appendHeader(roots: [], to: &car)
    for cid in cids {
      repository.withBlock(cid) { CARWriter.appendSection(cid, $0, to: &car) }
    }
    return .bytes(car, type: Self.carType)
  }

  func recordProof(_ parameters: Parameters) async throws -> Response {
    let account = try account(parameters)
    let path = try path(parameters)
    let proof = try await repository(account).proof(of: path)
    return .bytes(proof, type: Self.carType)
  }

  private func headers(_ type: String, _ account: ServedAccount) -> HTTPHeaders {
    var headers = HTTPHeaders()
    headers[.contentType] = type
    headers[.xContentTypeOptions] = "nosniff"
    if !account.rev.isEmpty { headers[.repoRev] = account.rev }
    return headers
  }

  // MARK: Blobs

  func listBlobs(_ parameters: Parameters) async throws -> Response {
    let account = try account(parameters)
    let limit = try parameters.limit(500, upTo: 1000)
    let snapshot = try account.snapshot()
    var held = try await repositories.held(snapshot, account.entry.cid)[...]
    if let cursor = parameters["cursor"] {
      let last = try Parameters.cid(cursor).bytes
      held = held.drop { !last.lexicographicallyPrecedes($0.bytes) }
    }
    if let since = parameters["since"], let base = try earlier(account, at: since) {
      let old = try await repositories.laidOut(base, base.cid ?? account.entry.cid)
      held = held.filter { !old.blobs.contains($0) }[...]
    }
    let page = held.prefix(limit)
    return .json { json in
      if page.count < held.count, let last = page.last { json.field("cursor", "\(last)") }
      json.field("cids", page.map { "\($0)" })
    }
  }

  func getBlob(_ parameters: Parameters, _ request: Request) async throws -> Response {
    let account = try account(parameters)
    let cid = try Parameters.cid(parameters.required("cid"))
    let repository = try await repository(account)
    let archive = account.archive
    guard repository.owns(cid) else { throw XRPCFault("BlobNotFound", "Blob not found") }
    guard let section = try archive.reader.section(of: cid) else {
      throw XRPCFault(
        "BlobNotFound", "Blob not found: a record refers to it, and the archive lacks it")
    }
    let budget = budget
    if !archive.hashed.contains(cid) {
      try await threads.run("hash \(cid) in \(ObjectIdentifier(archive))") {
        try archive.hash(cid) { budget.hasRead($0, release: archive.reader.releasePages) }
      }
    }
    var headers = HTTPHeaders()
    headers[.contentType] = Self.mediaType(repository.blobs[cid]?.mimeType)
    headers[.xContentTypeOptions] = "nosniff"
    headers[.contentDisposition] = "attachment; filename=\"\(cid)\""
    headers[.contentSecurityPolicy] = "default-src 'none'; sandbox"
    headers[.eTag] = "\"\(cid)\""
    headers[.cacheControl] = "public, max-age=31536000, immutable"
    let reader = archive.reader
    return .ranged(section.bodyLength, request, headers) { range, writer in
      try await budget.send(cid, range, of: reader, to: writer)
    }
  }

  /// A media type that a record names, if it is one and nothing else.
  private static func mediaType(_ text: String?) -> String {
    let others = "application/octet-stream"
    guard let text, text.utf8.count <= 127 else { return others }
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let allowed = Set(
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$&-^_.+".utf8)
    let isType =
      parts.count == 2 && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(allowed.contains) }
    return isType ? text : others
  }
}
