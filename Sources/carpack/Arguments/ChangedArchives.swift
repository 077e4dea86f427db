internal import Archive
internal import ArgumentParser
internal import Files
internal import Remote
internal import Reports
internal import SystemPackage
internal import Terminal

/// The archives that a verb changes, each of which is named: a folder might hold one that was not
/// meant.
struct ChangedArchives: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The archives; folders are not searched.", valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var files: [String]

  /// Changes one after the other, or makes a new one of each.
  ///
  /// An error with one of several is printed, and the others are still changed.
  ///
  /// - Parameters:
  ///   - common: how it talks.
  ///   - onlyReading: whether they are left as they are, so that they may lie elsewhere.
  ///   - acceptingLoss: whether one may be changed whose end was cut off.
  ///   - change: what is done with each.
  /// - Throws: ``Failure`` for a folder, and for an address of what would be changed, before
  ///   anything is changed; the worst status.
  func each(
    _ common: CommonOptions, onlyReading: Bool = false, acceptingLoss: Bool = false,
    _ change: (String) throws -> Void
  ) throws {
    for file in files {
      if !onlyReading { try Elsewhere.refuse(file, "only archives in files can be changed") }
      if BlobFolder.isFolder(file) {
        throw Failure(
          "\(file) is a folder",
          hint:
            "name the archives to change, such as \(FilePath(file).appending("*.car.zst"))",
          status: .usage, at: file)
      }
    }
    let named = NamedArchives(paths: files, limits: ArchiveLimits())
    try named.each(files: files) { file in
      if RemoteArchive.isAddress(file) {
        try change(file)
        return .success
      }
      let input = try InputFile(file, waitsForWriter: false)
      try CARInput.refuse(input)
      if let loss = WrittenSize.loss(of: input.path) {
        let isOlderCopy = WrittenSize.isWhole(input.path)
        let sentence = isOlderCopy ? loss.ofOlderCopy(named: file) : loss.ofEnd(named: file)
        guard onlyReading || acceptingLoss else {
          throw Failure(
            sentence, hint: OpenedArchive.adviceOnLoss(input.word),
            status: isOlderCopy ? .incomplete : .damaged, at: file)
        }
        Console.say(.warning, sentence)
      }
      do {
        try change(file)
      } catch let error as ArchiveError where error.reason == .notAnArchive {
        throw OtherInput.noArchive(input)
      }
      return .success
    }.finish(common)
  }
}

/// Where a verb writes a new archive, if it is to leave the old one as it is.
struct NewArchiveOptions: ParsableArguments {
  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "Write a new archive to this file or folder, and leave the old one as it is.",
      valueName: "file"),
    completion: .file())
  var output: String?

  @Flag(help: "With -o: replace the output if it exists.")
  var force = false

  func validate() throws {
    if output == "-" { throw ValidationError("-o takes a file: what is written is read back") }
    if let output, RemoteArchive.isAddress(output) {
      throw ValidationError("-o takes a file; \"carpack push\" then uploads it")
    }
    if force && output == nil { throw ValidationError("--force goes with -o") }
  }

  /// Refuses one output for several archives.
  func check(_ archives: ChangedArchives) throws {
    guard let output, archives.files.count > 1, !OutputPath.isFolder(output) else { return }
    throw ValidationError(
      "-o \(output) is one file, but there are several archives; use -o \(output)/ for a folder")
  }

  /// The file for the new archive of an old one; nil without -o.
  func target(for file: String) throws -> AtomicFile? {
    guard let path = path(for: file) else { return nil }
    try OutputPath.makeFolder(output)
    try OutputPath.refuseInput(path, among: [file])
    return try AtomicFile(FilePath(path), replacing: force, from: [FilePath(file)])
  }

  /// Where the new archive of an old one goes; nil without -o.
  func path(for file: String) -> String? {
    output.map { OutputPath.archive($0, for: RemoteArchive.shown(file)) ?? $0 }
  }
}
