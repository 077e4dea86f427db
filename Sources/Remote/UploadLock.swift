internal import Archive
internal import Files
internal import LibC
internal import ObjectStore
internal import Synchronization
internal import SystemPackage

/// Says on this machine that something is being written to an object, and what was begun for it in
/// the store.
///
/// It is a locked file in the user's cache. One that is not locked was left by a process that was
/// ended: what it had begun in the store is removed, so that no part of that is kept, and paid for,
/// indefinitely.
///
///     123456 "tag"                   what the scratch file goes on from; may be empty
///     upload⇥ID⇥KEY                  one line for each thing that was begun and not ended
///     probe⇥⇥KEY
///     copy⇥⇥KEY
final class UploadLock: Sendable {
  /// Something in the store that has to be ended: an upload to a key; a probe, and uploads to its
  /// key; or a copy that is to take the object's place.
  struct Work: Equatable, Sendable {
    enum Kind: String { case upload, probe, copy }
    let kind: Kind
    let key: String
    /// The upload's ID in the store.
    var id = ""
  }

  private let mark: FileStorage
  /// Whether a process that no longer runs left it.
  let wasLeft: Bool
  /// What was written into it.
  private let state: Mutex<(note: String, begun: [Work])>
  /// How long a mark may be.
  private static let longest: UInt64 = 1 << 20

  /// Marks an object; nil if another process on this machine is writing to it.
  ///
  /// - Throws: ``BackupError`` or `ArchiveError` if the mark cannot be made.
  init?(_ address: BucketAddress, of destination: BucketDestination) throws {
    try BlobFolder.make(destination.cache.string)
    let path = destination.file("upload", of: address)
    wasLeft = AtomicFile.isTaken(path)
    do {
      mark = try FileStorage.openOrCreate(path, permissions: .ownerReadWrite)
    } catch let error as ArchiveError where error.reason == .locked {
      return nil
    }
    let bytes = try mark.read(Int(min(mark.size, Self.longest)), at: 0)
    state = Mutex((Self.note(in: bytes), Self.begun(in: bytes)))
  }

  /// The note from where the scratch file continues.
  var note: String { state.withLock { $0.note } }

  /// The work in the store that was begun and not ended.
  var begun: [Work] { state.withLock { $0.begun } }

  /// Records from where the scratch file continues.
  ///
  /// - Throws: `ArchiveError`.
  func write(_ note: String) throws { try change { $0.note = note } }

  /// Writes down that something is begun.
  ///
  /// - Throws: `ArchiveError`.
  func note(_ work: Work) throws { try change { $0.begun.append(work) } }

  /// Crosses out what has been ended.
  ///
  /// - Throws: `ArchiveError`.
  func drop(_ work: Work) throws { try change { $0.begun.removeAll { $0 == work } } }

  private func change(_ body: (inout (note: String, begun: [Work])) -> Void) throws {
    try state.withLock { state in
      body(&state)
      let lines =
        [state.note] + state.begun.map { "\($0.kind.rawValue)\t\($0.id)\t\($0.key)" }
      let bytes = Array(lines.map { $0 + "\n" }.joined().utf8)
      // It is cut off last: a process killed in between leaves a line too many, and none too few.
      try mark.write(bytes.span, at: 0)
      try mark.truncate(to: UInt64(bytes.count))
    }
  }

  /// Lets others write to the object.
  ///
  /// The mark goes unless something that was begun has not been ended: then the next writer on this
  /// machine looks for it.
  func release() {
    if begun.isEmpty { _ = unsafe unlink(mark.path.string) }
    mark.unlock()
  }

  // MARK: As text

  /// What a mark says of the scratch file.
  static func note(in mark: [UInt8]) -> String {
    String(decoding: mark.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }

  /// What was begun, according to a mark; unknown lines are ignored.
  private static func begun(in mark: [UInt8]) -> [Work] {
    let lines = String(decoding: mark, as: UTF8.self).split(
      separator: "\n", omittingEmptySubsequences: false)
    return lines.dropFirst().compactMap { line in
      let words = line.split(separator: "\t", maxSplits: 2, omittingEmptySubsequences: false)
        .map(String.init)
      guard words.count == 3, let kind = Work.Kind(rawValue: words[0]),
        words[1].isEmpty == (kind != .upload)
      else { return nil }
      return Work(kind: kind, key: words[2], id: words[1])
    }
  }
}
