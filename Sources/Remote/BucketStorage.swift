package import Archive
internal import Files
internal import LibC
package import ObjectStore
internal import Synchronization
internal import SystemPackage

/// An archive in a bucket that is appended to.
///
/// The object's bytes are fetched when they are read; new bytes wait in a local scratch file until
/// ``commit()`` makes an object of both.
///
/// 1. The object is what it was until ``commit()`` has returned, and then it has everything up to
///    the last footer.
/// 2. It is replaced only if it is still the one that was opened.
/// 3. Of the object nothing is cut off or written over that is not an archive's end: it was replaced
///    whole, so that it does not end in a write that was not finished. That is damage, and what is
///    new goes behind it.
/// 4. How long the object was that this machine saw last, and what it held, is noted beside the
///    scratch file: one that is shorter now is an older copy, or was cut off.
/// 5. What a killed backup had appended is found in the scratch file by the next one on this
///    machine, if the object is still the one that it was appended to.
package final class BucketStorage: ArchiveStorage {
  /// The object.
  package let address: BucketAddress
  private let destination: BucketDestination
  private let mark: UploadLock
  private let file: FetchedFile
  /// The existing object: what names its content, nil if there is none; how many bytes it has; how
  /// many of them stay, the rest being cut off.
  private let base: Mutex<(tag: String?, count: UInt64, kept: UInt64)>
  /// How many bytes of the object stay in any case.
  private let damagedCount: UInt64
  /// How long it was then; nil if that is not known.
  private let seenCount: UInt64?
  /// What the object has lost since this machine saw it last; nil if nothing.
  package let loss: WrittenSize.Loss?
  /// Whether the object ends as an archive does.
  package var isWhole: Bool { damagedCount == 0 }
  /// What is in it, as far as that was noted.
  private let content: Mutex<WrittenSize.Content?>

  /// Opens the object, if there is one.
  ///
  /// - Throws: `ArchiveError` with the reason `locked` if another process on this machine writes to
  ///   it; `FetchFailure`, `StoreError`, `TransportError`; ``BackupError``.
  package init(_ address: BucketAddress, of destination: BucketDestination) async throws {
    guard let mark = try UploadLock(address, of: destination) else {
      throw ArchiveError(.locked)
    }
    let server = destination.object(address.key, mark)
    let (object, tag): (RemoteObject?, String?)
    do {
      try await server.giveUpLeftovers()
      object = try await Self.find(server)
      tag = try object?.requireTag()
    } catch {
      // What a killed backup has appended is still wanted.
      if mark.note.isEmpty { mark.release() }
      throw error
    }
    (self.address, self.destination, self.mark) = (address, destination, mark)
    let count = object?.count ?? 0
    base = Mutex((tag, count, count))
    damagedCount = object?.endsAsArchive == false ? count : 0
    let seen = Self.seen(address, of: destination)
    loss = seen.flatMap { object == nil ? nil : WrittenSize.Loss($0, size: count) }
    content = Mutex(seen?.content)
    seenCount = seen?.size
    let note = Self.note(count, tag)
    let scratch = destination.file("tail", of: address)
    do {
      let descriptor = try FileDescriptor.open(
        scratch, .readWrite, options: [.create, .closeOnExec, .noFollow],
        permissions: [.ownerReadWrite])
      let end = Int(try descriptor.seek(offset: 0, from: .end))
      let goesOn = mark.note == note && end > count
      if !goesOn { try descriptor.resize(to: 0) }
      file = try FetchedFile(
        object ?? RemoteObject(server), count: Int(count), scratch: FileScratch(descriptor))
      if goesOn {
        try file.adopt(upTo: end)
      } else {
        // Should the power fail, what an older tail had must not be there with the new note.
        try file.synchronize()
        try mark.write(note)
      }
      // The end that came with the first answer has the footer.
      if let end = object?.received { try file.keep(end, at: Int(count) - end.count) }
    } catch let error as Errno {
      throw BackupError.system("make \(scratch)", error.rawValue)
    }
  }

  /// The object, if there is one.
  ///
  /// An answer that does not end as an archive does may be wrong: it is asked for again.
  ///
  /// - Throws: `FetchFailure`.
  private static func find(_ server: BucketObject) async throws -> RemoteObject? {
    var (found, attempts) = (RemoteObject?.none, 0)
    repeat {
      attempts += 1
      found = try await RemoteObject.find(server, length: RemoteObject.firstPart)
    } while found?.endsAsArchive == false && attempts < mostAttempts
    return found
  }

  private static let mostAttempts = 3

  /// What was noted of an object; nil if nothing was.
  private static func seen(
    _ address: BucketAddress, of destination: BucketDestination
  ) -> WrittenSize.Note? {
    do {
      let bytes = try AtomicFile.read(destination.file("seen", of: address))
      return bytes.flatMap { WrittenSize.Note(parsing: String(decoding: $0, as: UTF8.self)) }
    } catch {
      // Without the note nothing is known, as on another machine.
      return nil
    }
  }

  /// Notes how long the object is, and what it holds.
  ///
  /// - Throws: ``BackupError`` if it cannot be noted.
  package func noteSeen() throws {
    let note = WrittenSize.Note(size: base.withLock { $0.count }, content: content.withLock { $0 })
    try AtomicFile.save(to: destination.file("seen", of: address), replacing: true) { write in
      try write(Array(note.text.utf8).span)
    }
  }

  package func note(_ newest: (WrittenSize.Content?) -> WrittenSize.Content?) throws {
    content.withLock { $0 = newest($0) }
  }

  /// The note that a scratch file continues where an object ends.
  static func note(_ count: UInt64, _ tag: String?) -> String { "\(count) \(tag ?? "-")" }

  /// Whether there is no object yet.
  package var isNew: Bool { base.withLock { $0.tag == nil } }

  // MARK: As a file

  package var size: UInt64 { UInt64(file.count) }

  package func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    let map = try map()
    guard offset <= UInt64(map.count), count <= map.count - Int(offset) else {
      throw ArchiveError(.truncated, offset: offset)
    }
    return try map.read(offset, count)
  }

  package func write(_ bytes: Span<UInt8>, at offset: UInt64) throws {
    guard offset >= damagedCount else { throw ArchiveError(.damagedEnd, offset: offset) }
    try file.append(bytes, at: Int(offset))
    keep(atMost: offset)
  }

  package func truncate(to size: UInt64) throws {
    guard size >= damagedCount else { throw ArchiveError(.damagedEnd, offset: size) }
    try file.cut(to: Int(size))
    keep(atMost: size)
  }

  private func keep(atMost count: UInt64) { base.withLock { $0.kept = min($0.kept, count) } }

  package func synchronize() throws { try file.synchronize() }

  /// Does nothing: it is locked for as long as it lives.
  package func lock() throws {}

  /// Removes the scratch file, unless something in it is not in the object yet.
  package func unlock() {
    guard base.withLock({ $0.count == UInt64(file.count) && $0.kept == $0.count }) else { return }
    // One that stays is emptied.
    _ = unsafe unlink(destination.file("tail", of: address).string)
    mark.release()
  }

  package func map() throws -> MappedFile { try MappedFile(file) }

  // MARK: As an object

  /// Checks whether the object can be written, before much is fetched for it.
  ///
  /// - Throws: as ``commit()`` does.
  package func check() async throws {
    try await destination.requireConditionalWrites(for: address.key, mark)
  }

  /// Makes an object of the old bytes and the new ones, up to the last footer.
  ///
  /// - Throws: `StoreError` of the kind `conditionFailed` if another writer was faster;
  ///   ``PushError`` if the store has no conditional writes; `FetchFailure`, `TransportError`.
  package func commit() async throws {
    let base = base.withLock { $0 }
    let map = try map()
    guard let end = try map.committedLength else { return }
    guard end != base.count || base.kept < base.count else {
      if loss == nil, seenCount != end { try noteSeen() }
      return
    }
    let content = BucketObject.Content(
      file: map, count: end, kept: base.tag.map { (address.key, $0, min(base.kept, end)) })
    var tag = try await destination.replace(address.key, base.tag, by: content, mark).tag
    if tag == nil { tag = try await RemoteObject.find(destination.object(address.key))?.tag }
    try file.cut(to: Int(end))
    self.base.withLock { [tag] in $0 = (tag, end, end) }
    try noteSeen()
  }
}
