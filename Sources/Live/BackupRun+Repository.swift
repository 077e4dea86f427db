package import ATProtocol
internal import Files
internal import HTTP
internal import IPLD
internal import Repository
internal import Snapshots
package import XRPC

/// The account's repository, or its changes: fetched until what came passes its checks.
///
/// Servers ignore `since`, refuse it, answer with nothing, or send blocks that are long gone; a
/// repository that is written to while it is read arrives with holes. A download counts only if
/// every block hashes to its CID, the tree is well-formed, nothing of it is missing, and the commit
/// is the account's, signed with its key. Anything else is fetched once more, as a whole. Blocks
/// that are not part of the repository are stored only while they are few (`Snapshot.LeftOut`).
extension BackupRun {
  /// How often a repository is fetched that fails its checks.
  private static let repositoryAttempts = 3

  /// The repository from the nearest place that has it: the snapshot, what an interrupted backup
  /// has left, the server.
  ///
  /// - Parameters:
  ///   - kept: the snapshot, if it has the account's newest commit.
  ///   - latest: that commit, if the server has named it.
  ///   - verifier: what a commit has to pass.
  func repository(
    _ kept: ArchivedSnapshot?, at latest: LatestCommit?, _ verifier: CommitVerifier
  ) async throws -> FoundRepository {
    if let kept {
      // What is damaged is fetched again.
      do { return try await restored(kept) } catch BackupError.carNotExact {}
    }
    if let latest, let left = try await leftRepository(at: latest.cid, verifier) { return left }
    return try await fetchRepository(newest: latest?.rev, verifier)
  }

  /// The repository that the archive already has.
  ///
  /// - Throws: ``BackupError/carNotExact(_:)`` if it is damaged.
  func restored(_ base: ArchivedSnapshot) async throws -> FoundRepository {
    try await onOwnQueue {
      let origin = base.snapshot.fetched ?? Snapshot.Fetched()
      return FoundRepository(try CheckedRepository(of: base), after: base, origin: origin)
    }
  }

  /// The repository that an interrupted backup has left; nil if there is none that passes its
  /// checks.
  private func leftRepository(at latest: CID, _ verifier: CommitVerifier) async throws
    -> FoundRepository?
  {
    guard target.reader != nil else { return nil }
    let storage = try target.storage()
    return try await onOwnQueue { [base] in
      do {
        return try FoundRepository.left(at: latest, after: base, in: storage, verifier)
      } catch let error where error.isLoss || error.faultKind == .notGenuine {
        // What is damaged is fetched again.
        return nil
      }
    }
  }

  /// Fetches the repository.
  ///
  /// - Parameter newest: the revision that the server has named as the newest.
  /// - Throws: `XRPCError` and `TransportError` if no answer came; ``CutShort`` if what came was
  ///   not whole each time, `CARError`, `RepositoryError` and ``BackupError`` if it was wrong.
  private func fetchRepository(newest: TID?, _ verifier: CommitVerifier) async throws
    -> FoundRepository
  {
    var since = base.flatMap { $0.snapshot.isComplete ? $0.snapshot.rev : nil }
    var attempt = 1
    while true {
      do {
        let fetched = try await fetchRepository(since: since, verifier)
        if since != nil, let newest, let rev = fetched.draft.rev, rev < newest {
          // Something on the way has kept an earlier answer to the same question.
          since = nil
          continue
        }
        if let leftOut = fetched.draft.fetched?.leftOut {
          warn(
            "the server sent \(leftOut.blocks) blocks (\(leftOut.bytes) bytes) that are not part of the repository; they are left out"
          )
        }
        return fetched
      } catch let error
        where error is IncompleteRepository
        || since != nil && (error is XRPCError || Self.isAboutContent(error))
      {
        // Some servers refuse the parameter, each with its own message.
        since = nil
        if error is RefusedCommit { attempt += 1 }
      } catch let error where Self.isAboutContent(error) && attempt < Self.attempts(after: error) {
        attempt += 1
        observer(
          .warning(
            "fetching the repository once more, because the first download failed its checks: \(error)"
          ))
        // A write to the repository may be done in a moment.
        try await Task.sleep(for: .milliseconds(200 * (1 << attempt)))
      } catch let error as XRPCError {
        throw error.unavailability(of: identity.did) ?? error
      } catch let error as RefusedCommit {
        throw BackupError.notGenuine("\(error.reason); \(error.keep(beside: target.path))")
      } catch let error where CutShort.isCut(error) {
        throw CutShort(cause: error, attempts: attempt)
      }
    }
  }

  /// How often the repository is requested at most: a signature does not get better, but it may be
  /// that of a commit that has been superseded in the meantime.
  private static func attempts(after error: any Error) -> Int {
    switch error.faultKind {
    case _ where error is RefusedCommit: 2
    // It is not going to be shorter.
    case .limit: 1
    default: repositoryAttempts
    }
  }

  private static func isAboutContent(_ error: any Error) -> Bool {
    switch error {
    case is CARError, is RepositoryError, is DAGCBORError, is RefusedCommit: true
    case let error as BackupError: error.isOfWhatCame
    default: false
    }
  }

  private func fetchRepository(since: TID?, _ verifier: CommitVerifier) async throws
    -> FoundRepository
  {
    let pace = ProgressPace()
    let received = ReceivedRepository(in: target.folder, limit: options.maxRepository) {
      [observer] count in
      if pace.isDue() { observer(.progress(BackupProgress(.repository, bytes: UInt64(count)))) }
    }
    let repoRev = try await client.stream(
      .getRepo(identity.did, since: since), isCompressed: options.isCompressed
    ) { response in
      try await received.receive(response.body)
      return response["atproto-repo-rev"]
    }
    let file = try await received.received()
    observer(.progress(BackupProgress(.checking)))
    let archive = target.reader
    return try await onOwnQueue { [base] in
      let sent = try file.map()
      let digest = try CheckedRepository.digest(of: sent)
      let source = try CARFile(sent, verifying: false)
      if let error = source.found.carError { throw error }
      let found = RepositoryInspection(of: source)
      var origin = Snapshot.Fetched()
      origin.repoRev = repoRev
      let repository: CheckedRepository
      // Some servers that are asked for changes send the whole repository.
      if let since, let base, !(found.isComplete && found.treeProblemCount == 0) {
        origin.since = since
        let changes = try RepositoryChanges.find(in: source, after: base, origin) {
          try verifier.check($0, in: source)
        }
        if let changes { return changes }
        repository = try CheckedRepository(source, over: base)
        origin.leftOut = Snapshot.LeftOut(of: repository)
      } else if found.sectionCount > found.reached.count,
        let leftOut = Snapshot.LeftOut(
          of: source, using: found.reachedWithBlobs(in: source).map(source.start(of:)))
      {
        origin.leftOut = leftOut
        repository = try CheckedRepository(inOrderOfTree: source, found, archive: archive)
      } else {
        repository = try CheckedRepository(source, archive: archive, digest) { found }
      }
      try verifier.check(repository.commit, in: source)
      let inspection = repository.inspection
      guard inspection.isComplete else {
        throw BackupError.incompleteRepository(
          nodes: inspection.missingNodes.count, records: inspection.missingRecordCount)
      }
      return FoundRepository(repository, after: base, origin: origin)
    }
  }
}

/// A repository that came without its end, or without blocks that it needs: nothing tells a
/// transfer that broke off from a loss on the server.
package struct CutShort: NetworkFault, CustomStringConvertible {
  let cause: any Error
  let attempts: Int

  package var mayPass: Bool { true }

  static func isCut(_ error: any Error) -> Bool {
    switch error {
    case let error as CARError: error.isCut
    case BackupError.incompleteRepository: true
    default: false
    }
  }

  /// The sentence for people.
  package var description: String {
    "the repository did not arrive whole" + (attempts > 1 ? ", \(attempts) times" : "")
      + ": \(cause)"
  }
}

extension CommitVerifier {
  /// Makes sure that the commit of a CAR is the account's own, as far as a key is known.
  ///
  /// - Throws: ``RefusedCommit`` with its block.
  fileprivate func check(_ commit: Commit, in car: CARFile) throws {
    do {
      try check(commit)
    } catch BackupError.notGenuine(let why) {
      guard let root = car.header.roots.first, let block = car.body(of: root) else {
        throw BackupError.notGenuine(why)
      }
      throw RefusedCommit(reason: why, block: Block(cid: root, bytes: block))
    }
  }
}

extension XRPCClient {
  /// The newest commit of an account; nil if the server does not say.
  ///
  /// - Throws: ``BackupError/accountUnavailable(_:_:_:)``; what the client throws, if the error is
  ///   temporary.
  package func latestCommit(of did: DID) async throws -> LatestCommit? {
    do {
      return try await call(.getLatestCommit(did))
    } catch let error as XRPCError {
      if let unavailable = error.unavailability(of: did) { throw unavailable }
      // Whether the server is of use, the repository tells; a temporary failure has been waited
      // for.
      guard !error.mayPass || error.isPage else { throw error }
      return nil
    }
  }
}

extension XRPCError {
  /// The error for an account that is not available; nil if the server does not say that.
  func unavailability(of did: DID) -> BackupError? {
    guard let error = declared(RepoError.self) else { return nil }
    return .accountUnavailable(did.text, BackupError.Unavailability(error), error.sentence)
  }
}

extension BackupError.Unavailability {
  /// What a server declares.
  package init(_ error: RepoError) {
    self =
      switch error {
      case .notFound: .unknown
      case .takendown: .takendown
      case .suspended: .suspended
      case .deactivated: .deactivated
      }
  }
}

extension BackupError {
  /// Whether the repository that a server sent was wrong, so that fetching it again may help.
  package var isOfWhatCame: Bool {
    switch self {
    case .malformedRepository, .notARepository, .incompleteRepository, .notGenuine: true
    default: false
    }
  }
}
