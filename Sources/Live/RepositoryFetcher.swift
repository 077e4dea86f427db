internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots
internal import SystemPackage
internal import XRPC

/// Fetches an account's repository, or what has changed of it, until what came is what it should
/// be.
///
/// Servers ignore `since`, refuse it, answer with nothing, or send blocks that are long gone; a
/// repository that is written to while it is read arrives with holes. What came counts only if
/// every block hashes to its CID, the tree is well-formed, nothing of it is missing, and the commit
/// is the account's, signed with its key. Whatever else came is fetched once more, as a whole.
/// Blocks that are not part of the repository are stored only while they are few
/// (``LeftOutBlocks``).
struct RepositoryFetcher: Sendable {
  /// The server.
  let client: XRPCClient
  /// The account.
  let did: DID
  /// Whether a commit is the account's own.
  let verifier: CommitVerifier
  /// Where to put files without a name.
  let folder: FilePath
  /// How long its CAR may be, in bytes, decompressed.
  let limit: Int
  /// Whether it is asked for compressed.
  let isCompressed: Bool
  /// Is told how many bytes have arrived.
  let arrived: @Sendable (Int) -> Void
  /// Is told when all of it has arrived, and is checked.
  let checking: @Sendable () -> Void
  /// Is told what went wrong before the next attempt.
  let retrying: @Sendable (any Error) -> Void

  /// How often a repository is fetched that is not what it should be.
  static let attempts = 3

  /// Fetches the repository.
  ///
  /// - Parameters:
  ///   - base: the snapshot that the archive has, whose blocks need not be sent again.
  ///   - archive: the archive.
  /// - Throws: `XRPCError` and `TransportError` if no answer came; `CARError`, `RepositoryError`,
  ///   ``BackupError`` and ``RefusedCommit`` if what came was wrong each time.
  func fetch(after base: ArchivedSnapshot?, archive: ArchiveReader?) async throws
    -> FoundRepository
  {
    var since = base.flatMap { $0.snapshot.isComplete ? $0.snapshot.rev : nil }
    var attempt = 1
    while true {
      do {
        return try await fetch(since: since, base, archive)
      } catch is IncompleteRepository {
        since = nil
      } catch is XRPCError where since != nil {
        // Some servers refuse the parameter, each with words of its own.
        since = nil
      } catch let error where since != nil && Self.isAboutContent(error) {
        since = nil
        if error is RefusedCommit { attempt += 1 }
      } catch let error
        where Self.isAboutContent(error) && attempt < Self.attempts(after: error)
      {
        attempt += 1
        retrying(error)
        // A write to the repository may be done in a moment.
        try await Task.sleep(for: .milliseconds(200 * (1 << attempt)))
      }
    }
  }

  /// How often it is asked for at most: a signature does not get better, but may have been that of
  /// a commit that another has followed meanwhile.
  private static func attempts(after error: any Error) -> Int {
    error is RefusedCommit ? 2 : attempts
  }

  private static func isAboutContent(_ error: any Error) -> Bool {
    switch error {
    case is CARError, is RepositoryError, is DAGCBORError, is RefusedCommit: true
    case let error as BackupError: error.isAboutContent
    default: false
    }
  }

  private func fetch(
    since: TID?, _ base: ArchivedSnapshot?, _ archive: ArchiveReader?
  ) async throws -> FoundRepository {
    let received = ReceivedRepository(in: folder, limit: limit, arrived: arrived)
    let repoRev = try await client.stream(
      GetRepo(did: did, since: since), isCompressed: isCompressed
    ) { response in
      try await received.receive(response.body)
      return response["atproto-repo-rev"]
    }
    let file = try await received.received()
    checking()
    return try await onOwnThread { [self] in
      try fetched(file.map(), since: since, base, archive, repoRev: repoRev)
    }
  }

  private func fetched(
    _ sent: MappedFile, since: TID?, _ base: ArchivedSnapshot?, _ archive: ArchiveReader?,
    repoRev: String?
  ) throws -> FoundRepository {
    var origin = Snapshot.Fetched(repoRev: repoRev)
    let digest = try CheckedRepository.digest(of: sent)
    let source = try CARFile(sent, verifying: false)
    if let error = source.found.carError { throw error }
    let found = RepositoryInspection(of: source)
    let repository: CheckedRepository
    // Some servers that are asked for changes send the whole repository.
    if let since, let base, !(found.isComplete && found.treeProblemCount == 0) {
      origin.since = since
      if let changes = try RepositoryChanges.find(in: source, after: base) {
        try check(changes.facts.commit, in: source)
        origin.leftOut = changes.leftOut
        return FoundRepository(.changes(changes), origin: origin)
      }
      repository = try CheckedRepository(source, over: base)
      origin.leftOut = LeftOutBlocks.of(repository)
    } else if found.sectionCount > found.reached.count,
      let leftOut = LeftOutBlocks.of(source, besides: found.reachedWithBlobs(in: source))
    {
      origin.leftOut = leftOut
      repository = try CheckedRepository(inOrderOfTree: source, found, archive: archive)
    } else {
      repository = try CheckedRepository(source, archive: archive, digest) { found }
    }
    try check(repository.commit, in: source)
    let inspection = repository.inspection
    guard inspection.isComplete else {
      throw BackupError.incompleteRepository(
        nodes: inspection.missingNodes.count, records: inspection.missingRecordCount)
    }
    return FoundRepository(.whole(repository), origin: origin)
  }

  private func check(_ commit: Commit, in source: CARFile) throws {
    do {
      try verifier.check(commit)
    } catch BackupError.notGenuine(let why) {
      guard let root = source.header.roots.first, let block = source.body(of: root) else {
        throw BackupError.notGenuine(why)
      }
      throw RefusedCommit(reason: why, cid: root, block: block)
    }
  }
}
