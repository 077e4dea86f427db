internal import Archive
internal import Files
internal import SystemPackage

/// The bytes of an archive that lies here, as far as they are committed, read from any thread.
final class CommittedBytes: Sendable {
  private let descriptor: FileDescriptor
  private let name: String
  /// How many bytes are committed.
  let count: UInt64
  /// How many bytes follow them.
  let tailLength: UInt64

  /// Opens an archive.
  ///
  /// - Throws: `ArchiveError` if it is none, or nothing is committed in it.
  init(_ path: FilePath) throws {
    let reader = try ArchiveReader(path: path)
    guard reader.generation.number > 0 else { throw ArchiveError(.noFooter) }
    count = reader.generation.committedLength
    name = path.string
    do {
      descriptor = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec])
      tailLength = UInt64(try descriptor.seek(offset: 0, from: .end)) - count
    } catch let error as Errno {
      throw BackupError.system("read \(path)", error.rawValue)
    }
  }

  deinit {
    // It was only read.
    do { try descriptor.close() } catch {}
  }

  /// So many bytes from an offset on.
  ///
  /// - Throws: ``BackupError`` if they are not there.
  func read(_ offset: UInt64, _ count: Int) throws -> [UInt8] {
    do {
      let bytes = try descriptor.read(count, at: offset)
      guard bytes.count == count else { throw Errno.ioError }
      return bytes
    } catch let error as Errno {
      throw BackupError.system("read \(name)", error.rawValue)
    }
  }

  /// The last bytes before `end`, which tell an archive's generation from all others: they are its
  /// footer.
  func ending(at end: UInt64) throws -> [UInt8] {
    let length = min(end, UInt64(FarHead.endingLength))
    return try read(end - length, Int(length))
  }
}
