internal import Archive
internal import ArgumentParser
internal import Files
internal import HTTP
internal import IPLD
internal import Remote
internal import Terminal

/// How much an archive may hold.
struct LimitOptions: ParsableArguments {
  @Flag(
    help:
      "Read an archive with an extreme compression ratio, and reassemble CARs much larger than the archive."
  )
  var allowLarge = false

  var limits: ArchiveLimits { ArchiveLimits(allowsLarge: allowLarge) }
}

/// The archive that a verb reads.
struct ArchiveArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The archive: a file, an https:// or s3:// address, or \"-\" for standard input.",
      valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var file: String

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var limits: LimitOptions

  /// Opens the archive, and runs `body` with it.
  ///
  /// - Parameters:
  ///   - network: how to reach a remote archive; nil for what the environment sets.
  ///   - body: what is done with it.
  func read<Value>(
    over network: NetworkOptions? = nil, _ body: (OpenedArchive) throws -> Value
  ) throws -> Value {
    let name = file == "-" ? InputFile.standardInputName : RemoteArchive.shown(file)
    return try Failure.naming(name) {
      let opened = try OpenedArchive(file, limits.limits, store, over: network)
      return try opened.checkingFetched { try body(opened) }
    }
  }
}

/// The archives that a verb looks at, one after the other.
struct ArchivesArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The archives: files, folders to look for archives in, https:// or s3:// addresses, s3://bucket/prefix/ for all under it; \"-\" for standard input.",
      valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var paths: [String]

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var limits: LimitOptions

  /// The archives.
  var archives: NamedArchives {
    NamedArchives(paths: paths, limits: limits.limits, store: store)
  }
}

extension OpenedArchive {
  /// Opens an archive; `-` is standard input.
  ///
  /// - Parameters:
  ///   - file: its name, or the address it has elsewhere.
  ///   - limits: how much it may hold.
  ///   - store: how to reach a remote archive; nil if only local archives are read.
  ///   - network: how to reach its server; nil for what the environment sets.
  /// - Throws: ``Failure`` for a CAR, a folder and other files that are not an archive;
  ///   `BackupError` and `ArchiveError` for a file that cannot be read as an archive.
  convenience init(
    _ file: String, _ limits: ArchiveLimits, _ store: StoreArguments? = nil,
    over network: NetworkOptions? = nil
  ) throws {
    let input = try Self.input(file, store, over: network)
    try CARInput.refuse(input)
    let reader: ArchiveReader
    do {
      reader = try ArchiveReader(input, limits: limits)
    } catch let error as ArchiveError where error.reason == .notAnArchive {
      throw OtherInput.noArchive(input)
    }
    try reader.refuseTooMuchContent()
    self.init(reader: reader, input: input)
  }

  /// The file or remote archive that a name leads to.
  ///
  /// - Throws: ``Failure`` for a folder; `BackupError`, `FetchFailure`.
  static func input(
    _ file: String, _ store: StoreArguments?, over network: NetworkOptions? = nil
  ) throws -> InputFile {
    if RemoteArchive.isAddress(file) { return try fetching(file, store, network) }
    if BlobFolder.isFolder(file) { throw try OtherInput.folder(file) }
    return try InputFile(file, waitsForWriter: false)
  }

  private static func fetching(
    _ address: String, _ store: StoreArguments?, _ network: NetworkOptions?
  ) throws -> InputFile {
    guard let store else { throw Elsewhere.refusal(of: address, "this command reads only files") }
    let network = try network ?? StoreArguments.network()
    guard !RemoteArchive.isFolder(address) else {
      throw OtherInput.folder(
        address, with: try RemoteArchive.archives(in: address, store.options, network: network))
    }
    return try InputFile(remote: address, store.options, network: network)
  }
}
