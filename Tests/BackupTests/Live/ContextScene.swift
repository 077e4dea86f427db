import ATProtocol
import Archive
import Copying
import HTTP
import IPLD
import StandIn
import SystemPackage
import TestSupport
import Testing

@testable import Files
@testable import Live
@testable import Snapshots
@testable import Verification

/// An account that points to others, an app view that shows them, and backups with both.
struct ContextScene {
  let account: StandInAccount
  let appView: StandInAppView
  let scene: AccountScene

  init(likes: Int = 0, follows: Range<Int> = 0..<0, others: [StandInAccount] = []) throws {
    account = try StandInAccount("alice", posts: 2)
    if likes > 0 || !follows.isEmpty {
      try account.commit(StandInAccount.pointing(likes: 0..<likes, follows: follows))
    }
    appView = try StandInAppView()
    scene = try AccountScene([account] + others)
  }

  var path: FilePath { scene.path("archive.car.zst") }

  @discardableResult
  func backUp(
    _ kind: ContextOptions.Kind = .posts, of other: StandInAccount? = nil, at now: String? = nil,
    rate: Double? = nil, _ change: (inout ContextOptions) -> Void = { _ in }
  ) async throws -> BackupReport {
    var options = scene.options
    if let now { options.now = { now } }
    var context = ContextOptions(kind)
    context.appView = appView.url
    change(&context)
    options.context = context
    let network = try scene.network { network in
      network.attempts = 1
      network.requestsPerSecond = rate
    }
    let backup = AccountBackup(network: network, options: options) { _ in }
    return try await backup.run(ATIdentifier((other ?? account).did), into: .shared(path))
  }

  /// What the newest snapshot has, by subject.
  func items(_ archive: FilePath? = nil) throws -> [String: ContextItem] {
    var items: [String: ContextItem] = [:]
    try scene.snapshot(archive ?? path).forEachContextItem { items[$0.subject.text] = $0 }
    return items
  }

  func pages() throws -> [Context.Page] { try scene.snapshot(path).context()?.pages ?? [] }

  func forgetLog() { appView.server.forgetLog() }
}

extension ContextScene {
  /// Has the newest snapshot say that it has these items.
  func forge(
    _ items: [ContextItem], of did: DID? = nil, _ change: (inout Context) -> Void = { _ in }
  ) throws {
    let storage = try FileStorage.open(path)
    let found = try SourceArchive(locking: storage, name: "a")
    let newest = try #require(found.history.newest)
    var snapshot = try ArchivedSnapshot.manifest(newest.cid, in: found.reader)
    let page = try Context.page(items)
    var context = Context(of: did ?? newest.did)
    context.pages = [Context.Page(page.cid, itemCount: items.count)]
    change(&context)
    let list = try context.block()
    snapshot.context = list.cid
    _ = try found.append(to: storage) { archive in
      let links = archive.history.entries.map { ChainLink($0) }
      return (
        try ManifestChain(links, in: archive, replacing: [newest.cid: snapshot]), [page, list], []
      )
    }
  }
}

/// The methods of an app view that are asked.
let getPosts = "app.bsky.feed.getPosts"
let getProfiles = "app.bsky.actor.getProfiles"
