package import ATProtocol
internal import HTTP
package import IPLD

// Methods of `com.atproto.sync`, which need no login.

extension XRPCCall {
  /// `com.atproto.sync.getRepo`: a repository as a CAR, or what is new in it.
  ///
  /// - Parameter revision: since which changes are wanted; servers may send more, or refuse it.
  package static func getRepo(_ did: DID, since revision: TID? = nil) -> XRPCCall {
    XRPCCall(get: "com.atproto.sync.getRepo", [("did", did.text), ("since", revision?.text)])
      // A server puts it together when it is asked.
      .with { $0.isPrepared = true }
  }

  /// `com.atproto.sync.getBlob`: the bytes of a blob.
  ///
  /// The server has it at hand, as a file. The reference server says `InvalidRequest` where it
  /// should say `BlobNotFound`.
  package static func getBlob(_ cid: CID, of did: DID) -> XRPCCall {
    XRPCCall(get: "com.atproto.sync.getBlob", [("did", did.text), ("cid", "\(cid)")])
  }
}

/// The head of a repository: its commit and the commit's revision.
package typealias LatestCommit = (cid: CID, rev: TID)

extension XRPCQuery<LatestCommit> {
  /// `com.atproto.sync.getLatestCommit`: the head of a repository.
  package static func getLatestCommit(_ did: DID) -> XRPCQuery {
    XRPCQuery(XRPCCall(get: "com.atproto.sync.getLatestCommit", [("did", did.text)])) {
      answer throws(AnswerFault) in
      (try answer.cid("cid"), try answer.identifier("rev", TID.self))
    }
  }
}

/// What a server says an account is.
package struct RepoStatus: Equatable, Sendable {
  /// Whether it serves the account.
  package let isActive: Bool
  /// Its word for one that it does not serve, such as `deleted`; nil where it says no more.
  package let word: String?
}

extension XRPCQuery<RepoStatus> {
  /// `com.atproto.sync.getRepoStatus`: whether a server serves an account.
  package static func getRepoStatus(_ did: DID) -> XRPCQuery {
    XRPCQuery(XRPCCall(get: "com.atproto.sync.getRepoStatus", [("did", did.text)])) {
      answer throws(AnswerFault) in
      // An answer about another account says nothing of this one.
      guard answer.optionalIdentifier("did", DID.self) == did, let isActive = answer.flag("active")
      else { return RepoStatus(isActive: false, word: nil) }
      return RepoStatus(isActive: isActive, word: isActive ? nil : answer.optionalText("status"))
    }
  }
}

extension XRPCQuery<ListPage<CID>> {
  /// `com.atproto.sync.listBlobs`: the blobs that an account's records refer to, page by page.
  ///
  /// The reference server gives a cursor with every page that is not empty; others never do. So a
  /// page without a cursor that is as long as was asked for is continued behind its last CID, which
  /// is the reference server's cursor.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - revision: after which records have to be.
  ///   - limit: how many to a page, 1 to 1,000; nil for the server's default.
  ///   - cursor: where to continue.
  package static func listBlobs(
    _ did: DID, since revision: TID? = nil, limit: Int? = nil, cursor: String? = nil
  ) -> XRPCQuery {
    let call = XRPCCall(
      get: "com.atproto.sync.listBlobs",
      [
        ("did", did.text), ("since", revision?.text), ("limit", limit.map { "\($0)" }),
        ("cursor", cursor),
      ])
    return XRPCQuery(call) { answer throws(AnswerFault) in
      var page = ListPage<CID>(entries: [], cursor: try answer.cursor())
      for item in try answer.items("cids") {
        let text = item.string ?? ""
        do throws(CIDError) {
          page.entries.append(try CID(text))
        } catch {
          page.malformed.append(Excerpt.of(text))
        }
      }
      if page.cursor == nil, let limit, page.entries.count >= limit, let last = page.entries.last {
        page.cursor = "\(last)"
      }
      return page
    }
  }
}

/// An account as a server lists it.
package struct ListedRepo: Hashable, Sendable {
  /// Who.
  package var did: DID
  /// The commit.
  package var head: CID?
  /// The revision.
  package var rev: TID?
  /// Whether it is active; true if the server does not say.
  package var active: Bool
  /// Why it is not.
  package var status: String?
}

extension XRPCQuery<ListPage<ListedRepo>> {
  /// How many accounts of a page are read at most: the lexicon allows 1,000, and some servers treat
  /// the limit as a hint.
  private static var maximumPage: Int { 2000 }

  /// `com.atproto.sync.listRepos`: the accounts of a server, page by page.
  ///
  /// - Parameters:
  ///   - limit: how many to a page; nil for the server's default.
  ///   - cursor: where to continue.
  package static func listRepos(limit: Int? = nil, cursor: String? = nil) -> XRPCQuery {
    let call = XRPCCall(
      get: "com.atproto.sync.listRepos",
      [("limit", limit.map { "\($0)" }), ("cursor", cursor)])
    return XRPCQuery(call) { answer throws(AnswerFault) in
      let items = try answer.items("repos")
      guard items.count <= maximumPage else {
        throw AnswerFault("it lists \(items.count) accounts on one page")
      }
      var page = ListPage<ListedRepo>(entries: [], cursor: try answer.cursor())
      for item in items {
        let item = Answer(item)
        guard let did = item.optionalIdentifier("did", DID.self) else {
          page.malformed.append(Excerpt.of(item.optionalText("did") ?? ""))
          continue
        }
        page.entries.append(
          ListedRepo(
            did: did, head: item.optionalCID("head"), rev: item.optionalIdentifier("rev", TID.self),
            active: item.flag("active") ?? true, status: item.optionalText("status")))
      }
      return page
    }
  }
}
