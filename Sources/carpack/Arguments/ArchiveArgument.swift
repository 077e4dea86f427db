internal import Archive
internal import ArgumentParser
internal import Backup
internal import IPLD

/// How much an archive may hold.
struct LimitOptions: ParsableArguments {
  @Flag(
    help:
      "Read an archive that holds far more than its size suggests, and put together CARs that are much larger than it."
  )
  var allowLarge = false

  var limits: ReadLimits { ReadLimits(allowsLarge: allowLarge) }
}

/// The archive that a verb reads.
struct ArchiveArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The archive; \"-\" for standard input.", valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var file: String

  @OptionGroup var limits: LimitOptions

  /// Opens it, and does something with it.
  func read<Value>(_ body: (OpenedArchive) throws -> Value) throws -> Value {
    try Failure.naming(file == "-" ? InputFile.standardInputName : file) {
      try body(OpenedArchive(file, limits.limits))
    }
  }
}

/// The archives that a verb looks at, one after the other.
struct ArchivesArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The archives, and folders to look for archives in; \"-\" for standard input.",
      valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var paths: [String]

  @OptionGroup var limits: LimitOptions

  /// The archives.
  var archives: NamedArchives { NamedArchives(paths: paths, limits: limits.limits) }
}

extension OpenedArchive {
  /// Opens an archive; `-` is standard input.
  ///
  /// - Throws: ``Failure`` for a CAR, a folder and other files that are no archive; `BackupError`
  ///   and `ArchiveError` for a file that cannot be read as an archive.
  convenience init(_ file: String, _ limits: ReadLimits) throws {
    if BlobFolder.isFolder(file) { throw try OtherInput.folder(file) }
    let input = try InputFile(file)
    try CARInput.refuse(input)
    let reader: ArchiveReader
    do {
      reader = try ArchiveReader(path: input.path, limits: limits)
    } catch let error as ArchiveError where error.reason == .notAnArchive {
      throw OtherInput.noArchive(input)
    }
    try reader.refuseTooMuchContent()
    self.init(reader: reader, input: input)
  }
}
