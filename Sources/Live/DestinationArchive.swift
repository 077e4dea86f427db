internal import ATProtocol
internal import Archive
internal import Files
internal import ObjectStore
internal import Remote
internal import Snapshots
internal import SystemPackage

/// What a backup goes to: an archive that is there, one that is being made under a temporary name,
/// or an object in a bucket.
///
/// 1. A reader of the final name sees what was there before, or an archive with at least one
///    snapshot.
/// 2. What a killed backup has left under the temporary name is found and resumed.
/// 3. The file is locked from the moment it is opened, or made by ``claim()``, so that a second
///    backup into it fails before it has fetched anything.
final class DestinationArchive {
  /// Where the archive is, or will be; for one in a bucket, a file here to note things on.
  let path: FilePath
  /// What a person calls it.
  let name: String
  /// Whether nothing had the final name when this was opened.
  let isNew: Bool
  /// The archive as it was when it was opened; nil if nothing was committed to it.
  private(set) var reader: ArchiveReader?
  /// Whose repository an interrupted backup has left under the temporary name, committed or not;
  /// nil if that cannot be told.
  private var leftoverOwner: DID?
  private var opened: (any ArchiveStorage)?
  private let new: AtomicFile?
  private var object: BucketStorage? { opened as? BucketStorage }

  /// How long to wait for another process that writes to the file: a killed one has the lock until
  /// the system is done with it.
  private static let patience: Duration = .seconds(2)

  /// Opens what is there.
  ///
  /// - Parameter isReadOnly: whether nothing is locked or written: to see what a backup would do.
  /// - Throws: `ArchiveError` for a file that is no archive, or that another process writes to;
  ///   ``BackupError``; as `BucketStorage` does.
  static func open(_ place: ArchivePlace, isReadOnly: Bool = false) async throws
    -> DestinationArchive
  {
    switch place {
    case .file(let path):
      return try await waitingForLock { try open(path, isReadOnly: isReadOnly) }
    case .object(let address, let bucket) where isReadOnly:
      let file = try await bucket.map(address)
      return DestinationArchive(
        UploadMark.file(of: "\(address)", in: bucket.cache, ending: "notes"),
        name: place.name, isNew: file == nil,
        reader: try file.map { (file) throws in try ArchiveReader(file) })
    case .object(let address, let bucket):
      let object = try await BucketStorage.open(address, of: bucket)
      return DestinationArchive(
        object.notes, name: place.name, isNew: object.isNew,
        reader: try committed(isNew: object.isNew) {
          try ArchiveReader(object.map(), ignoresTail: true)
        }, opened: object)
    }
  }

  private init(
    _ path: FilePath, name: String? = nil, isNew: Bool, reader: ArchiveReader? = nil,
    opened: (any ArchiveStorage)? = nil, new: AtomicFile? = nil
  ) {
    (self.path, self.name, self.isNew) = (path, name ?? path.string, isNew)
    (self.reader, self.opened, self.new) = (reader, opened, new)
  }

  /// Opens an archive that is there, in a storage of any kind.
  convenience init(_ path: FilePath, in storage: any ArchiveStorage) throws {
    let reader = try ArchiveReader(storage.map(), ignoresTail: true)
    self.init(path, isNew: false, reader: reader, opened: storage)
  }

  private static func open(_ path: FilePath, isReadOnly: Bool) throws -> DestinationArchive {
    let isNew = !AtomicFile.isTaken(path)
    if isReadOnly {
      let file = isNew ? AtomicFile.leftoverPath(of: path) : path
      guard AtomicFile.isTaken(file) else { return DestinationArchive(path, isNew: isNew) }
      let reader = try committed(isNew: isNew) { try ArchiveReader(path: file) }
      return DestinationArchive(path, isNew: isNew, reader: reader)
    }
    guard isNew else {
      try AtomicFile.refuseUnlessFile(path)
      let storage = try FileStorage.open(path)
      try storage.lock()
      return try DestinationArchive(path, in: storage)
    }
    let new = try AtomicFile(path, replacing: false)
    guard AtomicFile.isTaken(new.temporaryPath) else {
      return DestinationArchive(path, isNew: true, new: new)
    }
    let (storage, continued) = try new.storage { _ in true }
    let reader = try continued.flatMap { _ in
      try committed(isNew: true) { try ArchiveReader(storage.map(), ignoresTail: true) }
    }
    let archive = DestinationArchive(path, isNew: true, reader: reader, opened: storage, new: new)
    archive.leftoverOwner = continued?.owner
    return archive
  }

  /// What is committed to an archive; nil for nothing.
  ///
  /// - Parameter isNew: whether it has no final name yet. The writer then decides what can be
  ///   continued, and begins again where nothing can: no caller has been told of this file.
  private static func committed(isNew: Bool, _ open: () throws -> ArchiveReader) throws
    -> ArchiveReader?
  {
    do {
      let reader = try open()
      return isNew && reader.generation.number == 0 ? nil : reader
    } catch is ArchiveError where isNew {
      return nil
    }
  }

  /// Makes and locks the file, if that has not been done; finds out whether an object can be made.
  ///
  /// - Throws: as ``storage()`` does, and as `BucketStorage.check()` does; `CancellationError`.
  func claim() async throws {
    _ = try await Self.waitingForLock { try storage() }
    if let object, object.isNew { try await object.check() }
  }

  private static func waitingForLock<Value>(_ body: () throws -> Value) async throws -> Value {
    let end = ContinuousClock.now + patience
    while true {
      do {
        return try body()
      } catch let error as ArchiveError where error.reason == .locked {
        guard ContinuousClock.now < end else { throw error }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
  }

  /// The folder for files without a name: the one it lies in, if it is a file.
  var folder: FilePath {
    let parent = path.removingLastComponent()
    return parent.isEmpty ? FilePath(".") : parent
  }

  /// The storage to write to; makes the file if there is none.
  ///
  /// - Throws: `ArchiveError` if it cannot be made, or another process is making it.
  func storage() throws -> any ArchiveStorage {
    if let opened { return opened }
    guard let new else { throw BackupError.notFound("\(path)") }
    do {
      let (storage, _) = try new.storage { _ in true }
      opened = storage
      return storage
    } catch BackupError.system(_, Errno.fileExists.rawValue) {
      // Another run has made the archive since this one looked for it: the next run continues it.
      throw ArchiveError(.locked)
    }
  }

  /// What does not hold by the checksums of what is stored, of all snapshots.
  ///
  /// - Throws: `ArchiveError` if the file cannot be read.
  func storedDamage() throws -> StoredDamage { try opened?.storedDamage() ?? StoredDamage() }

  /// Lets others write to the file: nothing more will be written to it from here.
  ///
  /// A file that was made and is still empty is removed.
  func release() {
    new?.keep()
    opened?.unlock()
  }

  /// Refuses what an interrupted backup of another account has left: its blobs may exist nowhere
  /// else.
  ///
  /// - Throws: ``BackupError/leftover(_:_:)``.
  func refuseLeftover(unlessOf did: DID) throws {
    guard isNew else { return }
    let newest = try reader.flatMap { (reader) throws in try SnapshotHistory(of: reader).newest }
    guard let owner = newest?.did ?? leftoverOwner ?? reader?.owner, owner != did else { return }
    throw BackupError.leftover(new.map { "\($0.temporaryPath)" } ?? name, owner.text)
  }

  /// Gives the file its final name, if it does not have it, and returns when content and name are
  /// on the medium; makes an object in a bucket.
  ///
  /// An archive that is up to date has to be synced, too: the run that wrote it may have been
  /// killed before it was.
  ///
  /// - Throws: ``BackupError``; the file keeps its temporary name then. `ArchiveError` if it cannot
  ///   be synced; as `BucketStorage.commit()` does.
  func publish() async throws {
    if let object { return try await object.commit() }
    if let new { return try new.publishArchive() }
    try opened?.synchronize()
    try opened?.synchronizeName()
  }
}
