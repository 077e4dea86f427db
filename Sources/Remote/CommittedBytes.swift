internal import Archive
internal import IPLD
internal import SystemPackage

/// The bytes of an archive that lies here, as far as they are committed.
struct CommittedBytes: Sendable {
  private let file: MappedFile
  /// How many bytes are committed.
  let count: UInt64
  /// How many bytes follow them.
  let tailLength: UInt64

  /// Opens an archive.
  ///
  /// - Throws: `ArchiveError` if it is none, or nothing is committed in it.
  init(_ path: FilePath) throws {
    file = try MappedFile(path)
    let reader = try ArchiveReader(file)
    guard reader.generation.number > 0 else { throw ArchiveError(.noFooter) }
    count = reader.generation.committedLength
    tailLength = reader.fileSize - count
  }

  /// So many bytes from an offset on.
  func read(_ offset: UInt64, _ count: Int) throws -> [UInt8] { try file.read(offset, count) }

  /// The last bytes before `end`, which tell an archive's generation from all others: they are its
  /// footer.
  func ending(at end: UInt64) throws -> [UInt8] {
    let length = min(end, UInt64(RemoteObject.endingLength))
    return try read(end - length, Int(length))
  }
}

extension MappedFile {
  /// After how many bytes that were read their pages are let go of, so that no more of a large
  /// archive stays in memory than is on its way.
  private static let releaseInterval = 8 << 20

  /// Copies some bytes.
  ///
  /// - Throws: `FetchFailure` if they lie elsewhere and could not be fetched.
  func read(_ offset: UInt64, _ count: Int) throws -> [UInt8] {
    let range = Int(offset)..<Int(offset) + count
    let bytes = withBytes { $0.extracting(range).array }
    try checkFetched()
    if range.lowerBound / Self.releaseInterval != range.upperBound / Self.releaseInterval {
      releasePages()
    }
    return bytes
  }
}
