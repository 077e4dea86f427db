internal import Archive
internal import Files
internal import IPLD
internal import Live
internal import Reports
internal import Repository
internal import Terminal

/// A CAR that a verb reads, as it is or compressed.
enum CARInput {
  /// The most bytes that a compressed CAR may have: a few bytes can decompress to a full disk.
  private static let maximumContent = UInt64(AccountBackup.Options.largestRepository)

  /// The CAR in a file: what zstd or gzip compressed is decompressed to a temporary file.
  ///
  /// - Throws: ``Failure`` for an archive, a text, an empty file, and for what cannot be
  ///   decompressed.
  static func open(_ file: InputFile) throws -> InputFile {
    if let failure = OtherInput.noCAR(file) { throw failure }
    guard let form = file.withBeginning({ CompressedStream($0) }) else { return file }
    if form == .zstd { try refuseArchive(file) }
    do {
      return try InputFile(decompressing: file, form, limit: maximumContent)
    } catch let error as CompressedStreamError {
      let hint =
        error.faultKind == .limit ? "if you trust the file, decompress it yourself" : nil
      throw Failure(
        "\(file.name): \(error)", hint: hint, status: ExitStatus(error.faultKind), at: file.name)
    }
  }

  /// Prints that a CAR is the content of an archive with other snapshots.
  ///
  /// - Parameters:
  ///   - archived: the commits of all of them, the oldest first.
  ///   - inspection: what was found in the CAR.
  static func say(
    _ archived: [CID], _ inspection: RepositoryInspection, _ common: CommonOptions
  ) {
    guard archived.count > 1 else { return }
    let place = archived.lastIndex { $0 == inspection.header.roots.first }
    let isNewest = place == archived.count - 1
    let which = place.map { isNewest ? "the newest" : "number \($0 + 1)" } ?? "none"
    common.say(
      isNewest ? .note : .warning,
      "the CAR is the content of an archive with \(archived.count) snapshots, and its root is \(which) of them; \"carpack log\" of the archive lists them, \"carpack verify\" checks all"
    )
  }

  /// Refuses an address: a CAR has no index, so it cannot be read remotely.
  ///
  /// - Throws: ``Failure`` for an address.
  static func refuseAddress(_ name: String) throws {
    try Elsewhere.refuse(
      name, "CARs are read from files and standard input",
      hint: "download it first; \"carpack verify\" reads remote archives")
  }

  /// Refuses a CAR where an archive is wanted, and says which verbs read it.
  ///
  /// An archive that has lost its first bytes may begin like a CAR, with the header of its own. So
  /// nothing that has traces of an archive is called a CAR.
  ///
  /// - Throws: ``Failure`` for a CAR.
  static func refuse(_ input: InputFile) throws {
    guard holds(input, isCompressed: false) else { return }
    throw Failure(
      "\(input.name) is a CAR, not a carpack archive",
      hint: "\"carpack inspect \(input.word)\" checks it, \"carpack pack\" makes an archive of it",
      status: .usage, at: input.name)
  }

  /// Whether a file is a CAR, and no archive.
  ///
  /// - Parameters:
  ///   - input: the file.
  ///   - isCompressed: whether it also may be what gzip or zstd compressed.
  static func holds(_ input: InputFile, isCompressed: Bool) -> Bool {
    // The beginning of a remote file is requested only if its end is not an archive's.
    guard !ArchiveReader.hasFooter(atEndOf: input.mapped) else { return false }
    let isCAR = input.withBeginning { bytes in
      if isCompressed, CompressedStream(bytes) != nil { return true }
      do throws(CARError) {
        let payload = try CARVersion2.payload(of: bytes)
        _ = try CARHeader(bytes, at: payload.lowerBound)
        return true
      } catch {
        return false
      }
    }
    return isCAR && !ArchiveReader.hasTraces(in: input.mapped)
  }

  /// Refuses a CAR where the name of an archive is wanted.
  ///
  /// - Throws: ``Failure`` for a CAR; `BackupError` for a file that cannot be read.
  static func refuse(_ path: String) throws { try refuse(InputFile(path)) }

  /// Refuses an archive, and says which verbs read it.
  private static func refuseArchive(_ file: InputFile) throws {
    do {
      _ = try ArchiveReader(path: file.path)
    } catch let error as ArchiveError where error.reason == .notAnArchive {
      return
    } catch is ArchiveError {
      // A damaged archive is one anyway.
    }
    throw Failure(
      "\(file.name) is a carpack archive, not a CAR",
      hint: "\"carpack verify\" checks an archive, \"carpack extract --car\" extracts its CAR",
      status: .usage, at: file.name)
  }
}
