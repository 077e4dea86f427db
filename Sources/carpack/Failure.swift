internal import ATProtocol
internal import Archive
internal import Files
internal import Fleet
internal import HTTP
internal import IPLD
internal import LibC
internal import ObjectStore
internal import Remote
internal import Restore
internal import Snapshots
internal import XRPC

/// An error as a person reads it: what went wrong, what to do about it, and the exit status.
struct Failure: Error {
  let message: String
  let hint: String?
  let status: ExitStatus
  /// What it is about: a file, an account, or a place in a file.
  private(set) var place: String?

  init(_ message: String, hint: String? = nil, status: ExitStatus, at place: String? = nil) {
    self.message = message
    self.hint = hint
    self.status = status
    self.place = place
  }

  /// The same, said of a file or an account.
  func of(_ subject: String) -> Failure {
    let text = message.contains(subject) ? message : "\(subject): \(message)"
    return Failure(text, hint: hint, status: status, at: subject)
  }

  /// Does something with a file, whose name is in every error that comes of it.
  ///
  /// Errors about accounts, servers and words that select something already say what they are
  /// about; those of a format know bytes only.
  static func naming<Value>(_ file: String, _ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error where isOurs(error) {
      var failure = Failure(error)
      if isOfFormat(error) { failure = failure.of(file) }
      failure.place = failure.place ?? file
      throw failure
    }
  }

  private static func isOfFormat(_ error: any Error) -> Bool {
    error is ArchiveError || error is SnapshotError || error is SnapshotHistory.Break
      || error is CARError || error is RepositoryError || error is DAGCBORError
      || error is MSTProblem || error is MSTDiffError || error is RecordProofFault
  }

  /// Whether an error comes from here or the libraries, and not from the parsing of arguments.
  static func isOurs(_ error: any Error) -> Bool {
    isOfFormat(error) || error is Failure || error is BackupError || error is SelectionError
      || error is DatabaseError || error is FetchFailure || error is StoreError
      || error is PushError
      || error is IdentityError || error is TransportError || error is XRPCError
      || error is RestoreError || error is PLCSuccessor.Fault || error is PLCDirectory.Refusal
      || error is PLCLogError
  }

  init(_ error: any Error) {
    switch error {
    case let failure as Failure: self = failure
    case let error as BackupError: self.init(error)
    case let error as ArchiveError: self.init(error)
    case let error as SelectionError: self.init(error)
    case let error as IdentityError: self.init(error)
    case let error as FetchFailure: self.init(error)
    case let error as StoreError: self.init(error)
    case let error as PushError: self.init(error)
    case let error as DatabaseError: self.init(error)
    case let error as TransportError: self.init(error)
    case let error as XRPCError: self.init(error)
    case let error as RestoreError: self.init(error)
    case let error as PLCSuccessor.Fault: self.init("\(error)", status: .refused)
    case let error as PLCDirectory.Refusal:
      self.init("\(error)", status: error.isTransient ? .temporary : .refused)
    case is CancellationError: self.init("interrupted", status: .interrupted)
    default: self.init("\(error)", status: .damaged)
    }
  }

  private init(_ error: BackupError) {
    var hint: String?
    let status: ExitStatus
    switch error {
    case .system(let operation, let code):
      status = Self.status(code, writing: !operation.hasPrefix("read"))
      if code == EEXIST { hint = "use --force to replace it, or choose another name" }
    case .malformedRepository, .carNotExact, .malformedDocument: status = .damaged
    case .changedMeanwhile, .copyFailed: status = .ioError
    case .carsInFolder(_, let names):
      status = names.isEmpty ? .noInput : .usage
      if !names.isEmpty { hint = "name the one to pack, and the folder with --blobs" }
    case .otherAccount, .hostileName: status = .refused
    case .archiveOfOther:
      status = .cannotCreate
      hint = "--into, instead of -o, puts several accounts into one archive"
    case .fileDiffers:
      status = .cannotCreate
      hint = "use --overwrite to replace it"
    case .inTheWay: status = .cannotCreate
    case .busy: status = .temporary
    case .tooLarge:
      status = .damaged
      hint = "if you trust the archive and have the room, --allow-large puts it together"
    case .repositoryTooLarge:
      status = .refused
      hint = "if the account is known to have so much, --max-repo SIZE takes it"
    case .blobTooLarge:
      status = .refused
      hint = "if the blob is known to be so large, --max-blob SIZE takes it"
    case .notAFile:
      status = .cannotCreate
      hint = "choose another name for the output"
    case .leftover:
      status = .cannotCreate
      hint =
        "run the interrupted command again to finish it, or choose another name for the output; if the file is not needed, remove it"
    case .damagedArchive:
      status = .damaged
      hint = "nothing was changed; \"carpack repair\" saves what can be saved"
    case .unfinishedArchive:
      status = .damaged
      hint =
        "nothing was changed; wait for the program that writes to it, or let \"carpack repair\" take over what is whole"
    case .notFound:
      status = .noInput
      hint = "\"carpack ls\" shows what there is"
    case .notInRemains:
      status = .damaged
      hint =
        "\"carpack verify\" says what is lost; \"carpack find\" searches all snapshots that are left"
    case .notMissing:
      status = .noInput
      hint = "nothing was changed; \"carpack missing\" lists what is missing"
    case .malformedSelector: status = .usage
    case .ambiguousSelector:
      status = .usage
      hint = "give more of it"
    case .notGenuine: status = .notGenuine
    case .incompleteRepository:
      status = .incomplete
      hint =
        "\"carpack fetch repo\" gets what there is, and \"carpack pack\" packs it, incomplete as it is"
    case .accountUnavailable:
      status = .unavailable
      hint = "if the account is yours, --login asks as its owner"
    case .noServer, .notARepository: status = .unavailable
    case .endlessList: status = .incomplete
    case .unusableServer:
      status = .refused
      hint = "a server of your own can be named with --pds"
    case .lastSnapshot:
      status = .usage
      hint = "an account keeps one snapshot at least"
    case .unclaimedHandle:
      status = .notGenuine
      hint = "if the account is yours, name it by its DID, or its server with --pds"
    }
    self.init("\(error)", hint: hint, status: status)
  }

  private init(_ error: SelectionError) {
    let listed = "\"carpack log\" lists the snapshots"
    let (status, hint): (ExitStatus, String) =
      switch error {
      case .malformedSelector: (.usage, listed)
      case .noSuchSnapshot, .noSuchAccount: (.noInput, listed)
      case .ambiguousSnapshot: (.usage, "give more of it; \(listed)")
      case .severalAccounts:
        (.usage, "choose one with --account, or name single things by at://")
      case .ambiguousAccount: (.usage, "choose one by its DID")
      }
    self.init("\(error)", hint: hint, status: status)
  }

  private init(_ error: ArchiveError) {
    let status: ExitStatus
    var hint: String?
    switch error.reason {
    case .system(let operation, let code):
      status = Self.status(code, writing: !operation.hasPrefix("open"))
    case .alreadyExists, .locked, .begunOtherwise: status = .cannotCreate
    case .unsupportedVersion, .unknownFeatures:
      status = .failure
      hint = "a newer carpack wrote the file; use that, or unpack it with zstd: it holds a CAR"
    case .notAnArchive:
      status = .damaged
      hint = "archives are made by \"carpack backup\" and \"carpack pack\""
    case .contentMismatch, .lengthMismatch: status = .refused
    case .writerFailed:
      status = .ioError
      hint = "what has arrived is kept; once there is room, the same command goes on from here"
    case .commitUncertain, .changedMeanwhile: status = .ioError
    case .damagedIndex:
      status = .damaged
      hint = "\"carpack repair\" makes the index again from the data"
    case .damagedFrame, .damagedSection:
      status = .damaged
      hint =
        "\"carpack verify\" says what is lost; \"carpack repair -o NEW\" makes a new archive of everything else"
    case .damagedFooter:
      status = .damaged
      hint = "\"carpack repair\" puts right what can be, before anything is appended"
    default: status = .damaged
    }
    self.init("\(error)", hint: hint, status: status)
  }

  private init(_ error: FetchFailure) {
    var hint: String?
    let status: ExitStatus
    switch error.kind {
    case .unavailable: status = .unavailable
    case .absent: status = .noInput
    case .forbidden:
      status = .loginRefused
      hint = "keys are looked for in the environment, in Amazon's files, and on the machine"
    case .replaced:
      status = .temporary
      hint = "run the same command again"
    case .refused: status = .refused
    case .noRoom: status = .ioError
    }
    self.init("\(error)", hint: hint, status: status)
  }

  private init(_ error: PushError) {
    let (status, hint): (ExitStatus, String?) =
      switch error {
      case .busy: (.cannotCreate, nil)
      case .otherObject:
        (.refused, "--replace puts the one in the place of the other")
      case .knowsNoConditions: (.refused, "if nothing else writes there, say so with --exclusive")
      case .notKept: (.ioError, "nothing was replaced; try again, or another store")
      case .unfinished:
        (.incomplete, "the next backup takes up what is whole, or \"carpack repair\"")
      }
    self.init("\(error)", hint: hint, status: status)
  }

  private init(_ error: DatabaseError) {
    let (status, hint): (ExitStatus, String?) =
      switch error.kind {
      case .library: (.unavailable, "the package with it is called libpq5, or libpq")
      case .connection: (.unavailable, nil)
      case .statement: (.refused, nil)
      case .noFleet: (.noInput, "\"carpack fleet init\" makes one")
      }
    self.init("\(error)", hint: hint, status: status)
  }

  private init(_ error: StoreError) { self.init(FetchFailure(error)) }

  private init(_ error: IdentityError) {
    var hint: String?
    switch error {
    case .unresolvableHandle(let handle) where handle.topLevel != "invalid":
      hint = "where a server on this machine knows it, name that with --resolver, --pds or --plc"
    case .handleNotFound, .handleUnreachable:
      hint = "an account that is known by its DID can be named by it"
    case .handleUntrusted: hint = Self.certificateHint
    case .noAnswer(_, let cause): hint = Self.hint(cause)
    default: break
    }
    let status: ExitStatus =
      switch error.kind {
      case .unavailable: .unavailable
      case .temporary: .temporary
      case .notGenuine: .notGenuine
      case .refused: .refused
      }
    self.init("\(error)", hint: hint, status: status)
  }

  private init(_ error: XRPCError) {
    let isLogin = Self.logins.contains(error.endpoint)
    let status: ExitStatus
    var hint: String?
    switch error.status {
    case 400..<500 where error.name == "AuthFactorTokenRequired":
      status = .loginRefused
      hint = "give the code that came by mail with --auth-factor-token"
    case 401, 403:
      status = .loginRefused
      if !isLogin { hint = "--login asks as the account's owner" }
    case 400 where error.endpoint == "com.atproto.identity.signPlcOperation":
      status = .loginRefused
      hint =
        "a code is good once, and for a quarter of an hour; without --mail-code another is sent"
    case 400 where error.name == "InvalidToken":
      status = .loginRefused
      hint = "this takes the account's own password, and no app password"
    case 400 where isLogin:
      status = .loginRefused
      hint = "app passwords are made in the settings of the account"
    case 400..<500 where error.endpoint == "com.atproto.server.createAccount": status = .refused
    default: status = error.isTransient ? .temporary : .unavailable
    }
    self.init("\(error)", hint: hint, status: status)
  }

  /// The methods with which a session begins.
  private static let logins: Set<String> = [
    "com.atproto.server.createSession", "com.atproto.server.refreshSession",
    "com.atproto.server.getSession",
  ]

  private init(_ error: RestoreError) {
    let status: ExitStatus =
      switch error {
      case .otherJournal, .busy: .cannotCreate
      case .livesThere, .newerThere, .strangeKey, .otherServer, .importRefused: .refused
      case .cannotVouch, .otherPassword: .loginRefused
      case .needsHandle, .needsEmail, .needsInvite, .needsSigner, .handle: .usage
      case .otherRepository, .notWrittenAgain: .damaged
      case .missingBlobs, .codeSent: .incomplete
      case .identityUnchanged, .notActivated: .temporary
      }
    self.init(error.sentence, hint: error.hint, status: status)
  }

  private init(_ error: TransportError) {
    let status: ExitStatus =
      switch error.reason {
      case _ where error.isTransient: .temporary
      case .unusableURL, .unusablePin: .usage
      case .refusedAddress, .refusedRedirect, .tooManyRedirects, .tooLong: .refused
      case .unavailable: .failure
      default: .unavailable
      }
    self.init("\(error)", hint: Self.hint(error), status: status)
  }

  private static let certificateHint =
    "if the server has a certificate authority of its own, name its file with --ca-file"

  private static func hint(_ error: TransportError) -> String? {
    switch error.reason {
    case .notSecure: Self.certificateHint
    case .refusedAddress:
      "a server of your own can be named with --pds, or given an address with --pin"
    case .unavailable: "the network needs libcurl: on Debian and Ubuntu, apt-get install libcurl4"
    default: nil
    }
  }

  private static func status(_ code: CInt, writing: Bool) -> ExitStatus {
    switch code {
    case EEXIST: .cannotCreate
    case ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, EROFS, ELOOP, ENAMETOOLONG:
      writing ? .cannotCreate : .noInput
    default: .ioError
    }
  }

  /// Says it on standard error.
  func say() {
    guard Console.isJSON else {
      Console.say(.error, message)
      if let hint { Console.say("hint: \(hint)") }
      return
    }
    Console.sayJSON(.error) { writeFields(to: &$0) }
  }

  /// Writes it as the field of an object.
  func writeFields(to json: inout JSONWriter) {
    json.beginObject("error")
    json.field("status", Int(status.number))
    json.field("what", message)
    json.field("where", place ?? Subject.current)
    json.field("hint", hint)
    json.endObject()
  }
}
