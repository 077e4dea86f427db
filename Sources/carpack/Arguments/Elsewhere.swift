internal import Archive
internal import Files
internal import Remote
internal import SystemPackage
internal import Terminal

/// Remote archives, where a verb takes only files, or only reads.
enum Elsewhere {
  /// Refuses an address where a verb takes files only.
  ///
  /// - Parameters:
  ///   - name: the name that was given.
  ///   - why: the end of the sentence: why this verb takes files.
  ///   - hint: what to do instead; nil to fetch it first.
  /// - Throws: ``Failure`` for an address.
  static func refuse(_ name: String, _ why: String, hint: String? = nil) throws {
    if RemoteArchive.isAddress(name) { throw refusal(of: name, why, hint: hint) }
  }

  /// The same, of what is known to be an address.
  static func refusal(of address: String, _ why: String, hint: String? = nil) -> Failure {
    let shown = RemoteArchive.shown(address)
    return Failure(
      "\(shown) is not a local file, and \(why)", hint: hint ?? pulling(address), status: .usage,
      at: shown)
  }

  /// The hint about how to fetch an archive.
  private static func pulling(_ address: String) -> String {
    let shown = RemoteArchive.shown(address)
    if RemoteArchive.isFolder(address) {
      let folder = shown.hasSuffix("/") ? shown : shown + "/"
      return
        "pull the archives that you need first: carpack pull \("\(folder)NAME.car.zst".shellWord) NAME.car.zst"
    }
    // What follows the question mark may be secret.
    return
      "pull it first: carpack pull \(shown == address ? shown.shellWord : "ADDRESS") \(fileName(address).shellWord)"
  }

  /// An archive as a word of a command that changes it: FILE stands for one that is not a file yet.
  static func fileWord(_ name: String) -> String {
    RemoteArchive.isAddress(name) || name == InputFile.standardInputName ? "FILE" : name.shellWord
  }

  /// What a file of the archive is called: the last part of its address.
  static func fileName(_ address: String) -> String {
    let parts = RemoteArchive.shown(address).split(separator: "/")
    // Scheme and host come before.
    return parts.count > 2 ? String(parts[parts.count - 1]) : "archive.car.zst"
  }
}

extension ArchiveReader {
  /// Opens an archive that is only read, to be copied as a whole, local or remote.
  ///
  /// - Throws: ``Failure``; `ArchiveError`; `FetchFailure`.
  static func opening(_ file: String, _ limits: ArchiveLimits, _ store: StoreArguments) throws
    -> ArchiveReader
  {
    guard RemoteArchive.isAddress(file) else {
      return try MappedFile(FilePath(file)).refusingFurtherArchives {
        try ArchiveReader(path: FilePath(file), limits: limits)
      }
    }
    return try OpenedArchive(file, limits, store).reader
  }

  /// Runs `body` with archives, and makes sure that all reads succeeded: otherwise nothing
  /// can be concluded from it.
  ///
  /// - Throws: what was not fetched, before anything that `body` throws.
  static func checkingFetched<Value>(_ readers: [ArchiveReader], _ body: () throws -> Value) throws
    -> Value
  {
    let result = Result { try body() }
    for reader in readers { try reader.checkFetched() }
    return try result.get()
  }
}
