internal import ATProtocol
internal import ArgumentParser
internal import Files
internal import HTTP
internal import IPLD
internal import Live
internal import Notifications
internal import ObjectStore
internal import Remote
internal import Snapshots
internal import SystemPackage
internal import Terminal
internal import XRPC

/// `carpack backup`: live accounts, each into one archive.
struct BackupCommand: Verb, ConfigurableOptions {
  static let page = ManualPage("backup", PackageResources.backup_txt)
  static let settings = [
    Setting(name: "output", kind: .path, rivals: ["into"], letter: "o"),
    Setting(name: "into", kind: .path, rivals: ["output", "o"]),
    Setting(name: "jobs", kind: .text),
    Setting(name: "max-age", kind: .text),
    Setting(name: "healthcheck", kind: .secret),
  ]

  @Option(
    name: .customLong("accounts"),
    help: ArgumentHelp(
      "A file with one account a line; \"-\" for standard input.", valueName: "file"),
    completion: .file())
  var list: String?

  @Flag(help: "Every account that the server given with --pds lists.")
  var all = false

  @Option(
    help: ArgumentHelp(
      "With --all: the file whose first line is the server's admin password, for accounts that are deactivated or taken down (CARPACK_ADMIN_PASSWORD, or asked for).",
      valueName: "file"),
    completion: .file())
  var adminPasswordFile: String?

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "A folder (exists, or ends in \"/\"), or the archive. Also s3://bucket/prefix/ or s3://bucket/key.",
      valueName: "dir/|file"),
    completion: .file())
  var output: String?

  @Option(
    help: ArgumentHelp("One archive for several accounts.", valueName: "file"), completion: .file())
  var into: String?

  @Option(
    help: ArgumentHelp(
      "How many accounts to back up at a time; an account with a slow server gives up its place.",
      valueName: "n"))
  var jobs = 4

  @Option(
    help: ArgumentHelp(
      "Skip an account without a request if a backup found its newest snapshot to be current within this time: 90m, 20h, 7d.",
      valueName: "age"))
  var maxAge: Age?

  @Flag(help: "Show what would be fetched, from where and how much; write nothing.")
  var dryRun = false

  @Flag(
    name: .customLong("private"),
    help:
      "With --login: also keep private data: preferences, mutes, blocked lists, bookmarks, drafts, notification settings, chat. The archive gets mode 0600; it is not encrypted."
  )
  var keepsPrivateData = false

  @Option(
    help: ArgumentHelp(
      "A healthchecks.io-style URL to request at the end: GET URL after success, GET URL/STATUS otherwise.",
      valueName: "url"))
  var healthcheck: String?

  @Option(
    help: ArgumentHelp(
      "Sign the archive's head with this private key (PEM, readable only by you), into NAME.head beside the archive. The passphrase of an encrypted key is read from CARPACK_KEY_PASSPHRASE, or asked for.",
      valueName: "keyfile"),
    completion: .file())
  var signHead: String?

  @OptionGroup var size: RepositorySize

  @OptionGroup var context: ContextArguments

  @Argument(
    help: ArgumentHelp("The accounts: handles, DIDs or at:// URIs.", valueName: "account"))
  var accounts: [String] = []

  @OptionGroup var options: BackupOptions

  @OptionGroup var recipients: RecipientOptions

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var exclusive: ExclusiveOption

  func validate() throws {
    try require(
      !all || (accounts.isEmpty && list == nil), "--all backs up all accounts: name none")
    try require(all || adminPasswordFile == nil, "--admin-password-file goes with --all")
    try require(
      output == nil || into == nil, "-o and --into both name the destination: use one of them")
    try require(
      !keepsPrivateData || options.login.login,
      "--private is for the account's owner: log in with --login (the handle alone shows nothing private)"
    )
    try require(
      output != "-" && into != "-",
      "an archive is a file that is read back: -o and --into take no \"-\"")
    try require(
      into?.hasPrefix(BucketAddress.scheme) != true,
      "--into takes a file; in a bucket each account has an object of its own")
    try require(
      signHead == nil || !RemoteArchive.isAddress(output ?? ""),
      "--sign-head writes beside the archive, and takes a file")
    try require(1...64 ~= jobs, "--jobs takes 1 to 64")
  }

  func run() throws {
    guard !dryRun else { return try backUp() }
    let hooks = try Configuration.ofUser()?.hooks
    try endingBackup(
      healthcheck: healthcheck, hooks: hooks, network: options.network.options(), backUp)
  }

  private func backUp() throws {
    let (named, failures) = try namedAccounts()
    let isSingle = !all && named.count + failures.count == 1
    // Before a password is requested.
    try require(!options.login.login || isSingle, "--login is for one account at a time")
    let display = BackupDisplay(options, isSingle: isSingle, signer: try signer())
    var networkOptions = try options.networkOptions(showing: display)
    // Where there is nothing else to do, a host is waited for.
    if !isSingle, networkOptions.pds == nil {
      networkOptions.longestWait = MultiAccountBackup.longestWait
    }
    let backupOptions = try backupOptions()
    // What the user named may be anywhere.
    if let appView = backupOptions.context?.appView, appView != ContextOptions.publicAppView {
      networkOptions.namedServers.append(appView)
    }
    failures.forEach(display.failed)
    let groups = try BackupGroup.groups(
      of: named, backupOptions, self.options.common,
      destination: { try self.destination(isSingle: isSingle) },
      failed: display.failed)
    let server = networkOptions.pds
    try require(!all || server != nil, "--all needs the server: --pds URL")
    let jobs = jobs
    let destination = all ? try self.destination(isSingle: false) : nil
    try options.run(display) { [networkOptions] in
      let network = try Network(networkOptions)
      func backup(_ options: AccountBackup.Options) -> MultiAccountBackup {
        MultiAccountBackup(
          network: network, options: options, jobs: jobs, observer: display.observer)
      }
      if let server, let destination {
        let accounts = ServerAccounts(
          XRPCClient(service: server, network: network), isOperator: backupOptions.admin != nil,
          inactive: display.skipped, malformed: display.malformed)
        do {
          try await backup(backupOptions).run(accounts, into: destination)
        } catch let error as BrokenList {
          display.listEnded(Failure(error))
        }
      }
      for group in groups {
        try await backup(group.options).run(group.accounts, into: group.destination)
      }
    }
  }

  private func backupOptions() throws -> AccountBackup.Options {
    var options = try options.backupOptions()
    options.admin = try adminPasswordFile.map { try AdminPassword.input.need($0) }
    options.isToBeSealed = !recipients.recipients.isEmpty
    options.maximumAge = maxAge?.seconds
    options.isDryRun = dryRun
    options.keepsPrivateData = keepsPrivateData
    options.maxRepository = size.maxRepo.bytes
    options.context = try context.options()
    return options
  }

  /// What signs heads; nil without --sign-head.
  ///
  /// - Throws: ``Failure`` for a file that is not a key, that others may read, or that cannot be
  ///   read.
  private func signer() throws -> (@Sendable (BackupReport) throws -> FilePath?)? {
    guard let signHead else { return nil }
    let key = try KeyFile(signHead).key
    return { try $0.signHead(with: key, at: Host.unixTime) }
  }

  /// The accounts that are named on the command line and in the list, or else in the configuration,
  /// each once, and what is wrong with lines of the list.
  private func namedAccounts() throws -> (accounts: [ATIdentifier], failures: [Failure]) {
    var found = try accounts.map { word in
      if let failure = Self.mistakenFile(word) { throw failure }
      return try ATIdentifier(account: word)
    }
    if found.isEmpty, list == nil, !all {
      guard let configured = try Configuration.ofUser()?.allAccounts() else {
        throw Configuration.nothingToBackUp
      }
      return configured
    }
    let listed = try list.map { try ATIdentifier.list(in: $0) }
    found += listed?.accounts ?? []
    return (ATIdentifier.unique(found), listed?.failures ?? [])
  }

  /// The error for a file that is named instead of an account; nil if the word may be an account.
  private static func mistakenFile(_ word: String) -> Failure? {
    guard AtomicFile.isTaken(FilePath(word)) || word.hasSuffix(".car.zst") else { return nil }
    if word.hasSuffix(".car.zst") {
      return Failure(
        "\(word) is an archive, but backup takes an account",
        hint: "\"carpack backup ACCOUNT -o \(word.shellWord)\" brings it up to date",
        status: .usage, at: word)
    }
    guard !BlobFolder.isFolder(word), [".txt", ".list", ".csv"].contains(where: word.hasSuffix)
    else { return nil }
    return Failure(
      "\(word) is a file, but backup takes accounts",
      hint: "\"carpack backup --accounts \(word.shellWord)\" backs up those that it lists",
      status: .usage, at: word)
  }

  private func destination(isSingle: Bool) throws -> AccountBackup.Destination {
    if let into { return .shared(FilePath(into)) }
    guard let output else { return .folder(ArchiveFolder(told: "", options.common)) }
    if output.hasPrefix(BucketAddress.scheme) {
      let bucket = try BucketDestination(
        BucketAddress(output), store.options, network: self.options.network.options(),
        isExclusive: exclusive.exclusive, cache: Host.cacheFolder)
      guard isSingle || bucket.isFolder else { throw Self.notForSeveral(output) }
      return .bucket(bucket)
    }
    if RemoteArchive.isAddress(output) {
      throw Failure(
        "\(output) is on a web server, to which carpack cannot write",
        hint: "-o s3://bucket/prefix/ writes to an object store", status: .usage)
    }
    if OutputPath.isFolder(output) {
      return .folder(ArchiveFolder(told: output, options.common))
    }
    guard isSingle else { throw Self.notForSeveral(output) }
    return .file(FilePath(output))
  }

  private static func notForSeveral(_ output: String) -> Failure {
    let isObject = RemoteArchive.isAddress(output)
    return Failure(
      "\(output) is \(isObject ? "an object" : "a file"), but there are several accounts",
      hint: isObject
        ? "-o \("\(output)/".shellWord) has an object for each"
        : "-o \("\(output)/".shellWord) is a folder with an archive for each; --into \(output.shellWord) is one archive for all",
      status: .usage)
  }
}
