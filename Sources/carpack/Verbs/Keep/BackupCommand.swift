internal import ATProtocol
internal import ArgumentParser
internal import Files
internal import HTTP
internal import IPLD
internal import Live
internal import ObjectStore
internal import Remote
internal import Snapshots
internal import SystemPackage
internal import XRPC

/// `carpack backup`: live accounts, each into one archive.
struct BackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    _superCommandName: Carpack.name,
    abstract: "Back up live accounts: repository, every blob, identity, into one archive each.",
    discussion: Help.discussion(
      """
      ACCOUNT is a handle, a DID or an at:// URI. Who it is and where is found out, checked both ways; the repository is fetched (only what has changed, where the archive has a snapshot already), and nothing of it is kept unless every block hashes to its CID, the tree is whole and the commit is signed with the account's key. Then every blob that a record refers to, or that the server lists, is fetched straight into the archive and compared with its CID.

      Without -o the archive is HANDLE.car.zst in the current folder. One that exists is appended to; if nothing has changed, nothing is written, and two questions are all that is asked: who the account is (of a did:plc by the log of the PLC directory), and its newest commit; once a week, whether its handle still leads there. Before that is said, what is stored is compared with its checksums, and what is damaged is fetched and written again. A backup that is interrupted, by Ctrl-C or otherwise, is taken up by the next one: no blob that has arrived is fetched again.

      With -o s3://bucket/prefix/ the archive is appended to in the bucket, as prefix/DID.car.zst: what is new lies in a scratch file here until the store makes an object of the old one, which it has, and of that. What the archive holds is not fetched to be compared with its checksums; "carpack verify s3://…" does that. See "carpack push --help" for keys, and for stores that need --exclusive.

      Without ACCOUNT, the accounts that the configuration file lists are backed up, each where that says ("carpack config --help"). After the backup the file may have a program run, with the report as JSON on its standard input, and --healthcheck tells a service the exit status and nothing else. Neither changes the status.

      An account that was put back to an earlier state, or has two commits of one revision, is backed up all the same, and named as such: nothing of what was there before is lost. The exit status is 12 then, until --accept-rollback notes that it is known why. The same goes for a handle that does not lead to the account and back, and --allow-unconfirmed-handle; the archive is named after the DID then. A handle, server or key that changes is recorded as a snapshot of its own, even without a commit. A commit that no key of the account has signed is never taken.

      With --max-age an account is skipped, without a request, if a backup has found its newest snapshot to be what the server has within that time; the exit status is that of the snapshot, 0 or 10. What is stored is compared with its checksums all the same. The archive is looked for by the name that the account is given by. When a backup finds nothing new, it notes the time in an extended attribute of the file; where the file system has none, the time of the snapshot counts.

      With --dry-run it is found out who the account is, its newest commit, and which blobs the server lists that the archive does not hold. No repository and no blob is fetched, and no file or folder is made. How large a repository is no server says, and records that are not known yet may refer to further blobs. Damage is looked for only among those blobs. The exit status is 0 if the plan could be made, whatever it says.

      What does not come is named with its reason, and "carpack missing" lists it. The next backup asks again for what failed for a reason that may pass, and once a day for what the server does not have or refuses; "carpack fill" asks for all of it, also elsewhere. Nothing is written when nothing new comes of it. A list of blobs that breaks off is asked for again by the next backup.

      With --login --private the archive keeps what is in no repository, too, as the server gives it to the account's owner. What the server does not have, or does not give to an app password, is named and is no error; what had come before stays. "carpack extract --private" gives it back, and nothing else does.

      Exit status: 0 everything is here but losses that were accepted ("carpack missing --accept"), 10 blobs are missing, or a record that cannot be read may refer to unknown ones (all else is in the archive), 11 the archive is damaged and could not be mended, 12 the account's identity or signature does not hold, it was put back, has forked or does not claim its handle and nobody has accepted that, or it does not claim the handle that a password is asked for, 13 its handle, DID or server leads to a private address or to plain http, or its repository is larger than --max-repo, 66 a file that was named is not there, 69 the account or its server is not to be had, 73 another process writes to the archive, 75 a failure that may pass, also of the server's list of blobs, 77 the login was refused, 130 interrupted. Of several accounts the worst counts.
      """,
      examples: [
        "carpack backup alice.example.com",
        "carpack backup --accounts list.txt -o backups/ --max-age 20h",
        "carpack backup did:plc:w3pvxhp5ga2ax32lkbfrxakv --login -o alice.car.zst",
        "carpack backup alice.example.com -o s3://archives/",
      ],
      environment: .signing))

  @Argument(
    help: ArgumentHelp("The accounts: handles, DIDs or at:// URIs.", valueName: "account"))
  var accounts: [String] = []

  @Option(
    name: .customLong("accounts"),
    help: ArgumentHelp(
      "A file with one account a line; \"-\" for standard input.", valueName: "file"),
    completion: .file())
  var list: String?

  @Flag(help: "Every account that the server given with --pds lists.")
  var all = false

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "The folder for archives, if it exists or ends in \"/\"; otherwise the archive. Also s3://bucket/prefix/ or s3://bucket/key.",
      valueName: "dir/|file"),
    completion: .file())
  var output: String?

  @Option(
    help: ArgumentHelp("One archive for several accounts.", valueName: "file"), completion: .file())
  var into: String?

  @Option(
    help: ArgumentHelp(
      "How many accounts are backed up at a time; one whose servers are slow leaves its place to another.",
      valueName: "n"))
  var jobs = 4

  @Option(
    help: ArgumentHelp(
      "Skip an account, and ask nothing, if a backup has found its newest snapshot to be current within this time: 90m, 20h, 7d.",
      valueName: "age"))
  var maxAge: Age?

  @Flag(help: "Say what would be fetched, from where and how much of it, and write nothing.")
  var dryRun = false

  @Flag(
    name: .customLong("private"),
    help:
      "With --login: keep what the server gives to the account's owner alone, too: preferences, mutes, blocked lists, bookmarks, drafts, notification settings, chat. The archive gets mode 0600; it is not encrypted."
  )
  var keepsPrivateData = false

  @Option(
    help: ArgumentHelp(
      "A URL to ask for at the end, as healthchecks.io takes it: itself after success, with the exit status behind a slash otherwise.",
      valueName: "url"))
  var healthcheck: String?

  @Option(
    help: ArgumentHelp(
      "Sign the archive's head with this private key (PEM, readable by you alone), into NAME.head beside the archive. The passphrase of an encrypted key is read from CARPACK_KEY_PASSPHRASE, or asked for.",
      valueName: "keyfile"),
    completion: .file())
  var signHead: String?

  @OptionGroup var size: RepositorySize

  @OptionGroup var options: BackupOptions

  @OptionGroup var store: StoreArguments

  @OptionGroup var exclusive: ExclusiveOption

  func validate() throws {
    try require(
      !all || (accounts.isEmpty && list == nil), "--all is for all accounts: name none beside it")
    try require(output == nil || into == nil, "-o and --into both say where archives go")
    try require(
      !keepsPrivateData || options.login.login,
      "--private is for the account's owner: log in with --login (the handle alone shows nothing private)"
    )
    try require(
      output != "-" && into != "-",
      "an archive is a file, and is read back: -o and --into take no \"-\"")
    try require(
      into?.hasPrefix(BucketAddress.scheme) != true,
      "--into takes a file; in a bucket each account has an object of its own")
    try require(
      signHead == nil || !RemoteArchive.isAddress(output ?? ""),
      "--sign-head writes beside the archive, and takes a file")
    try require(1...64 ~= jobs, "--jobs has to be one of 1 to 64")
  }

  func run() throws {
    guard !dryRun else { return try backUp() }
    try endingBackup(healthcheck: healthcheck, network: options.network, backUp)
  }

  private func backUp() throws {
    let (named, failures) = try namedAccounts()
    let isSingle = !all && named.count + failures.count == 1
    // Before a password is asked for.
    try require(!options.login.login || isSingle, "--login is for one account at a time")
    let display = BackupDisplay(options, isSingle: isSingle, signer: try signer())
    let networkOptions = try options.networkOptions(showing: display)
    let backupOptions = try backupOptions()
    failures.forEach(display.failed)
    let groups = try BackupGroup.groups(
      of: named, backupOptions, destination: { try self.destination(isSingle: isSingle) },
      failed: display.failed)
    let server = networkOptions.pds
    try require(!all || server != nil, "--all needs the server: --pds URL")
    let jobs = jobs
    let destination = all ? try self.destination(isSingle: false) : nil
    try options.run(display) {
      let network = try Network(networkOptions)
      func backup(_ options: AccountBackup.Options) -> MultiAccountBackup {
        MultiAccountBackup(
          network: network, options: options, jobs: jobs, observer: display.observer)
      }
      if let server, let destination {
        let accounts = ServerAccounts(
          XRPCClient(service: server, network: network), inactive: display.skipped,
          malformed: display.malformed)
        try await backup(backupOptions).run(accounts, into: destination)
      }
      for group in groups {
        try await backup(group.options).run(group.accounts, into: group.destination)
      }
    }
  }

  private func backupOptions() throws -> AccountBackup.Options {
    var options = try options.backupOptions()
    options.maximumAge = maxAge?.seconds
    options.isDryRun = dryRun
    options.keepsPrivateData = keepsPrivateData
    options.maxRepository = size.maxRepo.bytes
    return options
  }

  /// What signs heads; nil if none are to be signed.
  ///
  /// - Throws: ``Failure`` for a file that is no key, that others may read, or that cannot be read.
  private func signer() throws -> (@Sendable (BackupReport) throws -> FilePath?)? {
    guard let signHead else { return nil }
    let key = try KeyFile(signHead).key
    return { report in
      guard let now = UnixTime(Host.now) else {
        throw Failure("the clock is not to be read", status: .failure)
      }
      return try report.signHead(with: key, at: now)
    }
  }

  /// The accounts that are named on the command line and in the list, or else in the configuration,
  /// each once, and what is wrong with lines of the list.
  private func namedAccounts() throws -> (accounts: [ATIdentifier], failures: [Failure]) {
    var found = try accounts.map { word in
      if let failure = Self.mistakenFile(word) { throw failure }
      return try ATIdentifier(account: word)
    }
    var list = list
    if found.isEmpty, list == nil, !all {
      let configuration = try Configuration.ofUser()
      found = configuration?.accounts.map(\.account) ?? []
      list = configuration?.accountList
      guard !found.isEmpty || list != nil else { throw Configuration.nothingToBackUp }
    }
    let listed = try list.map { try ATIdentifier.list(in: $0) }
    found += listed?.accounts ?? []
    var seen: Set<String> = []
    return (found.filter { seen.insert($0.text).inserted }, listed?.failures ?? [])
  }

  /// That a file was named where an account is wanted; nil for what may be an account.
  private static func mistakenFile(_ word: String) -> Failure? {
    guard AtomicFile.isTaken(FilePath(word)) || word.hasSuffix(".car.zst") else { return nil }
    if word.hasSuffix(".car.zst") {
      return Failure(
        "\(word) is an archive, and backup takes the account",
        hint: "\"carpack backup ACCOUNT -o \(word)\" brings it up to date", status: .usage, at: word
      )
    }
    guard !BlobFolder.isFolder(word), [".txt", ".list", ".csv"].contains(where: word.hasSuffix)
    else { return nil }
    return Failure(
      "\(word) is a file, and backup takes accounts",
      hint: "\"carpack backup --accounts \(word)\" backs up those that it lists", status: .usage,
      at: word)
  }

  private func destination(isSingle: Bool) throws -> AccountBackup.Destination {
    if let into { return .shared(FilePath(into)) }
    guard let output else { return .folder(ArchiveFolder("")) }
    if output.hasPrefix(BucketAddress.scheme) {
      let bucket = try BucketDestination(
        BucketAddress(output), store.options, network: self.options.network.options(),
        isExclusive: exclusive.exclusive, cache: Host.cacheFolder)
      guard isSingle || bucket.isFolder else { throw Self.notForSeveral(output) }
      return .bucket(bucket)
    }
    if RemoteArchive.isAddress(output) {
      throw Failure(
        "\(output) is on a web server, which takes no backups",
        hint: "-o s3://bucket/prefix/ writes to an object store", status: .usage)
    }
    if OutputPath.isFolder(output) {
      return .folder(ArchiveFolder(FilePath(output)))
    }
    guard isSingle else { throw Self.notForSeveral(output) }
    return .file(FilePath(output))
  }

  private static func notForSeveral(_ output: String) -> Failure {
    let isObject = RemoteArchive.isAddress(output)
    return Failure(
      "\(output) is \(isObject ? "an object" : "a file"), and there are several accounts",
      hint: isObject
        ? "-o \(output)/ has an object for each"
        : "-o \(output)/ is a folder with an archive for each; --into \(output) is one archive for all",
      status: .usage)
  }
}
