internal import ATProtocol
internal import Archive
internal import Files
internal import LibC
internal import ObjectStore
internal import Remote
internal import Snapshots
internal import SystemPackage

/// What a backup goes to: an archive that is there, one that is being made under a temporary name,
/// or an object in a bucket.
///
/// 1. A reader of the final name sees what was there before, or an archive with at least one
///    snapshot.
/// 2. What a killed backup has left under the temporary name is found, and gone on with.
/// 3. The file is locked from the moment it is opened, or made by ``claim()``, so that a second
///    backup into it fails before it has fetched anything.
final class ArchiveTarget {
  /// Where the archive is, or will be; of one in a bucket, a file here to note things on.
  let path: FilePath
  /// What a person calls it.
  let name: String
  /// The archive as it was when it was opened; nil if nothing was committed to it.
  private(set) var reader: ArchiveReader?
  private var opened: (any ArchiveStorage)?
  private let new: AtomicFile?
  private let object: BucketStorage?

  /// How long another process that writes to the file is waited for: one that was killed has the
  /// lock until the system is done with it.
  private static let patience: Duration = .seconds(2)

  /// Opens what is there.
  ///
  /// - Throws: `ArchiveError` for a file that is no archive, or that another process writes to;
  ///   ``BackupError``.
  static func open(_ path: FilePath) async throws -> ArchiveTarget {
    try await waitingForLock { try ArchiveTarget(path) }
  }

  /// Opens an object in a bucket, if there is one.
  ///
  /// - Throws: as `BucketStorage` does; `ArchiveError` for an object that is no archive.
  static func open(_ address: BucketAddress, of bucket: BucketDestination) async throws
    -> ArchiveTarget
  {
    try ArchiveTarget(await BucketStorage.open(address, of: bucket))
  }

  private init(_ object: BucketStorage) throws {
    (path, name) = (object.notes, "\(object.address)")
    (new, opened, self.object) = (nil, object, object)
    reader = try Self.begun(object, isNew: object.isNew)
  }

  /// What is committed to a storage; nil for nothing.
  ///
  /// - Parameter isNew: whether it goes by no final name yet. The writer decides then what can be
  ///   continued, and begins again where nothing can: no one has been told of this file.
  private static func begun(_ storage: any ArchiveStorage, isNew: Bool) throws -> ArchiveReader? {
    guard isNew else { return try ArchiveReader(storage.map(), ignoresTail: true) }
    do {
      let reader = try ArchiveReader(storage.map(), ignoresTail: true)
      return reader.generation.number > 0 ? reader : nil
    } catch is ArchiveError {
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

  /// Opens an archive that is there, in a storage of another kind (tests).
  init(_ path: FilePath, in storage: any ArchiveStorage) throws {
    (self.path, name) = (path, path.string)
    (new, object) = (nil, nil)
    reader = try Self.begun(storage, isNew: false)
    opened = storage
  }

  init(_ path: FilePath) throws {
    (self.path, name) = (path, path.string)
    object = nil
    if AtomicFile.isTaken(path) {
      try AtomicFile.refuseUnlessFile(path)
      new = nil
      let storage = try FileStorage.open(path)
      try storage.lock()
      reader = try Self.begun(storage, isNew: false)
      opened = storage
      return
    }
    let new = try AtomicFile(path, replacing: false)
    self.new = new
    guard AtomicFile.isTaken(new.temporaryPath) else { return }
    let (storage, continued) = try new.storage { _ in true }
    opened = storage
    if continued != nil { reader = try Self.begun(storage, isNew: true) }
  }

  /// The folder for files without a name: the one it lies in, if it is a file.
  var folder: FilePath {
    let parent = path.removingLastComponent()
    return parent.isEmpty ? FilePath(".") : parent
  }

  /// Whether the archive does not have its final name yet.
  var isNew: Bool { new != nil || object?.isNew == true }

  /// Whether it lies elsewhere, so that what is stored is not read for nothing.
  var isElsewhere: Bool { object != nil }

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
    } catch BackupError.system(_, EEXIST) {
      // Another run has made the archive since this one looked for it: the next run goes on with
      // it.
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
    guard isNew, let reader else { return }
    let newest = try SnapshotHistory(of: reader).newest
    guard let owner = newest?.did ?? reader.owner, owner != did else { return }
    throw BackupError.leftover(new.map { "\($0.temporaryPath)" } ?? name, owner.text)
  }

  /// Gives the file its final name, if it does not have it, and returns when content and name are
  /// on the medium.
  ///
  /// An archive that is up to date has to be synced, too: the run that wrote it may have been
  /// killed before it was.
  ///
  /// An object in a bucket is made now.
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
