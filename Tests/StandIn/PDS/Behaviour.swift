/// How a server departs from what the lexicons say, one field for each departure that was observed.
///
/// The fields' first values are those of a server that departs in nothing. ``typescript``,
/// ``millipds``, ``cocoon`` and ``arroba`` behave as these servers were seen to.
package struct Behaviour: Sendable, Hashable {
  /// What a server does with `since` in `getRepo`.
  package enum Since: Sendable, Hashable {
    /// The blocks that are newer.
    case exact
    /// The blocks that are newer, and those of that revision itself.
    case inclusive
    /// Everything, as if it had not been asked.
    case ignored
    /// Nothing: 400.
    case refused
  }

  /// What comes when there is nothing newer than `since`.
  package enum NothingNew: Sendable, Hashable {
    /// The commit, and nothing else.
    case commitAlone
    /// The header, which names the commit, and no block.
    case headerAlone
  }

  /// In which order a CAR has its blocks.
  package enum Order: Sendable, Hashable {
    /// The commit, and then the tree from the top.
    case tree
    /// The newest first, and by CID downwards: the commit is wherever it falls.
    case newestFirst
    /// The tree upwards, the commit last.
    case commitLast
  }

  /// How a refusal is put into words.
  package enum Refusal: Sendable, Hashable {
    /// Status 400 (or 401), and the error that the lexicon declares.
    case declared
    /// Status 400, and an error `InvalidRequest`.
    case invalidRequest
    /// Status 404 (or 401), and text.
    case text
    /// Status 500, and JSON.
    case internalError
  }

  /// How lists give out their pages.
  package enum Paging: Sendable, Hashable {
    /// A cursor on every page but the last.
    case proper
    /// A cursor on every page that is not empty, a short one, too: the end is an empty page.
    case cursorOnEveryPage
    /// A cursor that is a JSON integer.
    case integerCursor
    /// No cursor ever, though there is more.
    case noCursor
    /// The same cursor again and again, and the same page.
    case loop
    /// Pages and cursors without an end, of blobs that no server has.
    case endless
    /// Every page twice.
    case twice
    /// An empty text as the cursor of the last page.
    case emptyCursor
    /// Before each page one without entries, with a cursor.
    case emptyPages
    /// Between the CIDs texts and numbers that are none.
    case garbled
  }

  /// What a server does with a query that it does not like.
  package enum ListSince: Sendable, Hashable {
    /// It does as it is asked.
    case exact
    /// It lists everything.
    case ignored
    /// Status 400.
    case refused
    /// Status 500.
    case fails
  }

  /// What a name for a moment in `RateLimit-Reset` is.
  package enum ResetTime: Sendable, Hashable {
    /// Seconds since 1970.
    case absolute
    /// Seconds from now.
    case relative
  }

  /// How many requests may come in how much time.
  package struct RateLimit: Sendable, Hashable {
    /// How many.
    package var requests: Int
    /// In how many seconds.
    package var seconds: Double
    /// How the headers say when there are more.
    package var reset = ResetTime.absolute
    /// Whether every answer has `RateLimit-*` fields.
    package var isAnnounced = true
    /// Whether an answer 429 has `Retry-After`.
    package var hasRetryAfter = true

    /// A limit.
    package init(requests: Int, seconds: Double) {
      self.requests = requests
      self.seconds = seconds
    }
  }

  // MARK: Accounts

  /// What commits are like.
  package var account = AccountStyle()
  /// How an account that is not there is refused.
  package var unknownAccount = Refusal.declared
  /// Whether `getRepoStatus` says the revision.
  package var statusHasRev = true

  // MARK: getRepo

  /// The media type of CARs.
  package var carType = "application/vnd.ipld.car"
  /// How the end of a CAR is marked.
  package var carFraming = LoopbackResponse.Framing.chunked
  /// In which order its blocks are.
  package var order = Order.tree
  /// Whether it has all blocks that there ever were.
  package var sendsOldBlocks = false
  /// Blocks that come after a repository and have nothing to do with it.
  package var foreignBlocks: ForeignBlocks?
  /// Whether a CAR is compressed for clients that accept it.
  package var compressesCARs = false
  /// What `since` does.
  package var since = Since.exact
  /// What comes when there is nothing new.
  package var nothingNew = NothingNew.commitAlone
  /// Whether answers name the revision in `Atproto-Repo-Rev`.
  package var announcesRev = false
  /// Whether `HEAD` is refused.
  package var refusesHEAD = false

  // MARK: listBlobs, getBlob

  /// How blobs are listed.
  package var paging = Paging.proper
  /// The most blobs that a page has, whatever limit was asked for.
  package var maximumPage = 1000
  /// What `since` does to the list.
  package var listSince = ListSince.exact
  /// Whether blobs are listed that were lost or never uploaded.
  package var listsMissing = true
  /// Whether uploads are listed and given out that no record refers to.
  package var givesUnreferenced = false
  /// Whether `listBlobs` and `getBlob` answer 500, always.
  package var hasNoBlobs = false
  /// How a blob that is not there is refused.
  package var unknownBlob = Refusal.invalidRequest
  /// Whether a part of a blob can be requested.
  package var honoursRange = false
  /// How the end of a blob is marked.
  package var blobFraming = LoopbackResponse.Framing.length
  /// Whether blobs have their media type, instead of `application/octet-stream`.
  package var blobsHaveTypes = true
  /// Where `getBlob` redirects to; `{cid}` stands for the CID, and nil for no redirection.
  package var blobRedirect: String?

  // MARK: getRecord, getBlocks

  /// Whether a proof is about another record than the one asked for.
  package var provesWrongRecord = false
  /// How a record that is not there is refused; nil to prove that it is not.
  package var absentRecord: Refusal?

  // MARK: Sessions

  /// How a wrong password is refused: 401 with JSON, 401 with text, 400 with JSON.
  package var wrongPassword = Refusal.declared
  /// The response to a used refresh token: nil to accept it.
  package var usedRefreshToken: Refusal? = .declared
  /// The response to an invalid token.
  package var garbledToken = Refusal.declared
  /// After how many requests an access token has expired.
  package var accessTokenRequests: Int?
  /// After how many seconds an access token has expired.
  package var accessTokenSeconds = 7200.0
  /// Whether handles are resolved that are another server's.
  package var resolvesHandles = true

  /// The account whose session everybody gets; nil for their own.
  package var logsInAs: String?

  // MARK: Writing

  /// The name that the server calls itself by, in its DID and where it names itself in others'.
  package var hostName = "127.0.0.1"
  /// Whether names are lower-cased at login, as 0.4.29 does.
  package var lowercasesNames = true
  /// Whether handles of deactivated accounts are resolved, which the reference server does not do
  /// and the DNS does.
  package var resolvesDeactivated = true
  /// Methods that it does not have.
  package var lacks: Set<String> = []
  /// Whether the app's server, which methods of `app.bsky` are handed on to, is away.
  package var appViewIsAway = false
  /// The domain under which handles are given out.
  package var userDomain = ".example.com"
  /// Whether a token that vouches for an account has to name the method it is for.
  package var requiresMethod = true
  /// The invite codes that are good, each once; nil if none is needed.
  package var invites: Set<String>?
  /// The operator's password; nil if there is none.
  package var adminPassword: String?
  /// How many accounts may be made in how much time.
  package var accountLimit: RateLimit?
  /// Whether repositories may be imported.
  package var takesImports = true
  /// How long a repository may be that is imported, in bytes.
  package var importLimit = 64 << 20
  /// How long a blob may be, in bytes.
  package var blobLimit = 50 << 20
  /// Whether `describeServer` says how long a blob may be.
  package var saysBlobLimit = true
  /// How many blobs may be uploaded in how much time, by all accounts together.
  package var uploadLimit: RateLimit?
  /// Media types of blobs that are refused with status 500, as 0.4.29 does.
  package var refusedTypes: Set<String> = ["text/plain", "application/json"]
  /// Whether successful answers to what writes have a body.
  package var newestAnswers = false

  // MARK: All of it

  /// The limit that is kept.
  package var rateLimit: RateLimit?
  /// How many seconds every answer takes at the least.
  package var latency = 0.0

  /// A server that departs in nothing.
  package init() {}

  /// The reference server.
  package static let typescript: Behaviour = {
    var behaviour = Behaviour()
    behaviour.order = .newestFirst
    behaviour.nothingNew = .headerAlone
    behaviour.paging = .cursorOnEveryPage
    behaviour.usedRefreshToken = nil
    behaviour.garbledToken = .internalError
    behaviour.announcesRev = true
    behaviour.compressesCARs = true
    return behaviour
  }()

  /// millipds, in Python.
  package static let millipds: Behaviour = {
    var behaviour = Behaviour()
    behaviour.account.curve = .p256
    behaviour.unknownAccount = .text
    behaviour.paging = .integerCursor
    behaviour.honoursRange = true
    behaviour.blobsHaveTypes = false
    behaviour.unknownBlob = .text
    behaviour.wrongPassword = .text
    behaviour.usedRefreshToken = .text
    behaviour.garbledToken = .internalError
    behaviour.resolvesHandles = false
    return behaviour
  }()

  /// cocoon, in Go.
  package static let cocoon: Behaviour = {
    var behaviour = Behaviour()
    behaviour.order = .commitLast
    behaviour.sendsOldBlocks = true
    behaviour.since = .ignored
    behaviour.unknownAccount = .internalError
    behaviour.paging = .noCursor
    behaviour.listSince = .ignored
    behaviour.blobFraming = .chunked
    behaviour.unknownBlob = .internalError
    behaviour.givesUnreferenced = true
    behaviour.absentRecord = .internalError
    behaviour.refusesHEAD = true
    behaviour.wrongPassword = .invalidRequest
    behaviour.usedRefreshToken = .invalidRequest
    behaviour.garbledToken = .invalidRequest
    return behaviour
  }()

  /// arroba, in Python, without its blobs.
  package static let arroba: Behaviour = {
    var behaviour = Behaviour()
    behaviour.account.namesPreviousCommit = true
    behaviour.account.countsRevisions = true
    behaviour.carFraming = .length
    behaviour.carType = "text/html; charset=utf-8"
    behaviour.since = .inclusive
    behaviour.statusHasRev = false
    behaviour.hasNoBlobs = true
    behaviour.listSince = .refused
    behaviour.provesWrongRecord = true
    behaviour.absentRecord = .declared
    behaviour.wrongPassword = .invalidRequest
    behaviour.usedRefreshToken = nil
    behaviour.garbledToken = .invalidRequest
    return behaviour
  }()

  /// arroba as it runs upstream, where blobs lie elsewhere and `getBlob` says where.
  ///
  /// - Parameter target: where; `{cid}` stands for the CID.
  package static func arroba(redirectingBlobsTo target: String) -> Behaviour {
    var behaviour = arroba
    behaviour.hasNoBlobs = false
    behaviour.blobRedirect = target
    return behaviour
  }

  /// A server that does in every respect what is hardest to cope with, and still has everything.
  package static let hostile: Behaviour = {
    var behaviour = Behaviour()
    behaviour.account.namesPreviousCommit = true
    behaviour.account.hasLegacyDocument = true
    behaviour.carType = "text/html; charset=utf-8"
    behaviour.order = .commitLast
    behaviour.sendsOldBlocks = true
    behaviour.since = .refused
    behaviour.refusesHEAD = true
    behaviour.statusHasRev = false
    behaviour.unknownAccount = .internalError
    behaviour.paging = .garbled
    behaviour.maximumPage = 3
    behaviour.listSince = .fails
    behaviour.unknownBlob = .internalError
    behaviour.blobFraming = .connection
    behaviour.blobsHaveTypes = false
    behaviour.givesUnreferenced = true
    behaviour.provesWrongRecord = true
    behaviour.absentRecord = .text
    behaviour.garbledToken = .internalError
    return behaviour
  }()

  /// All servers that were observed, by their names.
  package static let observed: [(name: String, behaviour: Behaviour)] = [
    ("typescript", typescript), ("millipds", millipds), ("cocoon", cocoon), ("arroba", arroba),
  ]
}
