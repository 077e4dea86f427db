internal import Age
internal import Files
internal import LibC
internal import SystemPackage
internal import Terminal

/// The keys of archives that are kept on this machine, so that these are appended to without their
/// owner's key: a file each in the folder `keys` beside the configuration, with mode 0600.
///
/// Each is the identity of one archive: it opens that archive, and no other.
enum RememberedKeys {
  private static let ending = ".age"
  /// How many may be kept: each that does not fit costs a tenth of a millisecond.
  private static let maximumCount = 10_000

  /// The folder; nil if the user has none of their own.
  private static var folder: FilePath? {
    func path(_ variable: String) -> FilePath? {
      Host.environment(variable).map(\.value).flatMap { $0.hasPrefix("/") ? FilePath($0) : nil }
    }
    let settings = path("XDG_CONFIG_HOME") ?? path("HOME")?.appending(".config")
    return settings?.appending("carpack").appending("keys")
  }

  /// The files with keys.
  ///
  /// - Throws: `BackupError` if the folder cannot be read; ``Failure`` if there are too many.
  static func files() throws -> [String] {
    guard let folder, AtomicFile.isTaken(folder) else { return [] }
    let names = try BlobFolder.names(in: folder.string).filter { $0.hasSuffix(ending) }.sorted()
    guard names.count <= maximumCount else {
      throw Failure(
        "\(folder) has \(names.count) keys; at most \(maximumCount) are tried",
        status: .failure, at: folder.string)
    }
    return names.map { folder.appending($0).string }
  }

  /// Keeps the identity of an archive.
  ///
  /// - Throws: `BackupError` and `ArchiveError` if it cannot be written; ``Failure`` if the user
  ///   has no folder.
  static func keep(_ identity: AgeIdentity) throws {
    guard let folder else {
      throw Failure(
        "no folder for keys: neither HOME nor XDG_CONFIG_HOME is set", status: .usage)
    }
    let path = folder.appending(identity.recipient.text + ending)
    guard !AtomicFile.isTaken(path) else { return }
    try BlobFolder.make(folder.string)
    // The files have a mode of their own: if this fails, others see the names, and no key.
    _ = unsafe chmod(folder.string, 0o700)
    try AtomicFile.save(to: path, replacing: true, isPrivate: true) { write in
      try identity.text.withBytes(write)
    }
  }
}
