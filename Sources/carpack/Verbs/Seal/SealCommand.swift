internal import Age
internal import Archive
internal import ArgumentParser
internal import Files
internal import IPLD
internal import Keys
internal import Reports
internal import Sealing
internal import SystemPackage
internal import Terminal

/// `carpack seal`: an archive that only its recipients can read.
struct SealCommand: ReportingCommand {
  static let page = ManualPage("seal", PackageResources.seal_txt)

  @Argument(
    help: ArgumentHelp("The archive.", valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var file: String

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The sealed archive to write.", valueName: "file"), completion: .file())
  var output: String

  @Option(
    name: [.customShort("r"), .customLong("recipient")],
    help: ArgumentHelp(
      "An age recipient who may read it; may be repeated.", valueName: "age1…"))
  var recipients: [String] = []

  @Flag(help: "Also let a passphrase open it, which is asked for.")
  var passphrase = false

  @Flag(help: "Replace the output if it exists.")
  var force = false

  @OptionGroup var parity: ParityOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    try require(
      !recipients.isEmpty || passphrase,
      "name who may read it with -r RECIPIENT, or use --passphrase")
    _ = try recipients.map(SealedRecipient.init(named:))
  }

  func run() throws {
    var sealed = try recipients.map(SealedRecipient.init(named:))
    if passphrase { sealed.append(.passphrase(try ArchiveKeys.newPassphrase())) }
    let report = try Failure.naming(file) {
      try SealedCopy.write(
        FilePath(file), to: AtomicFile(FilePath(output), replacing: force, isPrivate: true),
        isSealed: true
      ) { try ArchiveKeys.layer().create(in: $0, for: sealed) }
    }
    try SealedCopy.end(report, (file, output), self)
  }
}

/// `carpack unseal`: a sealed archive as a plain one.
struct UnsealCommand: ReportingCommand {
  static let page = ManualPage("unseal", PackageResources.unseal_txt)

  @Argument(
    help: ArgumentHelp("The sealed archive.", valueName: "archive"), completion: .file())
  var file: String

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The archive to write.", valueName: "file"), completion: .file())
  var output: String

  @Flag(help: "Replace the output if it exists.")
  var force = false

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let report = try Failure.naming(file) {
      try SealedCopy.write(
        FilePath(file), to: AtomicFile(FilePath(output), replacing: force, isPrivate: true),
        isSealed: false
      ) { $0 }
    }
    try SealedCopy.end(report, (file, output), self)
  }
}

/// An archive from a plain file into a sealed one, or back.
enum SealedCopy {
  /// How many bytes the archive has, and the file that was written; and what of it is damaged.
  typealias Copied = (archive: UInt64, file: UInt64, damage: [String])

  /// Copies an archive byte for byte.
  ///
  /// - Parameters:
  ///   - path: The archive.
  ///   - target: The file to make.
  ///   - isSealed: Whether it becomes sealed.
  ///   - begin: Makes the storage for the archive of an empty file.
  /// - Throws: `SealedError` if it is already sealed, or not sealed; `ArchiveError` if it is
  ///   damaged.
  static func write(
    _ path: FilePath, to target: AtomicFile, isSealed: Bool,
    _ begin: (any ArchiveStorage) throws -> any ArchiveStorage
  ) throws -> Copied {
    let source = try FileStorage.open(path)
    let archive = try source.archive()
    if isSealed, archive !== source { throw SealedError.isSealed }
    if !isSealed, archive === source { throw SealedError.notSealed }
    let file = try archive.map()
    let reader = try ArchiveReader(file)
    try reader.refuseFurtherArchives()
    // Pieces end where generations do.
    var ends = [file.count]
    try reader.forEachGeneration { generation in
      if generation.committedLength > 0 { ends.append(Int(generation.committedLength)) }
      return true
    }
    ends.sort()
    return try target.orDiscard {
      let storage = try target.storage()
      Interruption.removeIfInterrupted(target.temporaryPath.string)
      defer { Interruption.removeIfInterrupted(nil) }
      let new = try begin(storage)
      var place = 0
      var hash = XXH64.Stream()
      for end in ends {
        while place < end {
          let range = place..<min(end, place + 1 << 20)
          let bytes = file.withBytes(reading: [range]) { $0.array(range) }
          try file.checkFetched()
          try new.write(bytes.span, at: UInt64(place))
          hash.update(bytes.span)
          place = range.upperBound
          file.releasePages()
        }
        try new.synchronize()
      }
      try new.commit()
      // What was written is read back before it gets its name.
      guard try checksum(of: new.map()) == hash.finish() else {
        throw BackupError.copyFailed(
          "the new archive differs from the original when it is read back")
      }
      try target.publish()
      return (UInt64(file.count), try storage.size, try damage(of: reader))
    }
  }

  /// What of an archive is damaged, a sentence each.
  private static func damage(of reader: ArchiveReader) throws -> [String] {
    var verification = try reader.verify(.quick)
    guard verification.worst == .damaged else { return [] }
    // Which content is lost shows where all of it is hashed.
    verification = try reader.verify(.full)
    return verification.findings.filter { $0.severity == .damaged }.map(\.description)
  }

  private static func checksum(of file: MappedFile) throws -> UInt64 {
    var place = 0
    var hash = XXH64.Stream()
    while place < file.count {
      let range = place..<min(file.count, place + 1 << 20)
      file.withBytes(reading: [range]) { hash.update($0.extracting(range)) }
      file.releasePages()
      place = range.upperBound
    }
    try file.checkFetched()
    return hash.finish()
  }

  /// Prints the result, and ends with the status of the archive: the copy lacks what that lacks,
  /// and is damaged where that is.
  static func end(
    _ copied: Copied, _ names: (file: String, output: String), _ verb: some ReportingCommand
  ) throws {
    if verb.json {
      report.print((names.file, names.output, copied))
    } else {
      let sealed =
        copied.file == copied.archive ? "" : ", of an archive of \(Quantity.bytes(copied.archive))"
      verb.common.say("\(names.output): \(Quantity.bytes(copied.file))\(sealed)")
    }
    Console.say(
      .damaged, copied.damage.lazy.map { "\(names.file): \($0)" }, of: copied.damage.count,
      all: "carpack verify \(names.file.shellWord)")
    let status = try OpenedArchive(names.file, ArchiveLimits()).status
    try ExitStatus.worst(copied.damage.isEmpty ? .success : .damaged, status).finish()
  }

  static let report = Report<(file: String, output: String, copied: Copied)>(
    "seal", "`carpack seal` and `carpack unseal`."
  ) {
    ArchiveFields.file { $0.file }
    Field("output", "the file that was written") { $0.output }
    Field("archiveBytes", "how many bytes the archive has when it is not sealed") {
      $0.copied.archive
    }
    Field("bytes", "how many bytes were written") { $0.copied.file }
    Field("damage", "what of the archive is damaged, a sentence each") { $0.copied.damage }
  }
}
