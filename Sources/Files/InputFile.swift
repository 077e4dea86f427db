package import Archive
internal import IPLD
internal import LibC
package import SystemPackage

/// A file that is read: by its name, or from standard input.
///
/// It is mapped, so that its size does not matter. What cannot be mapped (a pipe, standard input)
/// goes into a temporary file first. If the file is a page with an archive inside, the archive is
/// read.
package final class InputFile {
  /// The name of standard input in messages.
  package static let standardInputName = "standard input"

  /// Its name in messages.
  package let name: String
  /// Its bytes, for several threads.
  package let mapped: MappedFile
  /// Whether they are those of the archive in a page.
  fileprivate let isInPage: Bool
  private let spool: TemporaryFile?
  private let given: FilePath
  /// What the file was when it was opened; nil for one that no other program can change.
  private let stamp: Stamp?

  /// The fields that change when another process writes to a file or replaces it.
  private typealias Stamp = (number: ino_t, size: off_t, seconds: Int, nanoseconds: Int)

  private static func stamp(_ status: stat) -> Stamp {
    #if canImport(Darwin)
      let modified = status.st_mtimespec
    #else
      let modified = status.st_mtim
    #endif
    return (status.st_ino, status.st_size, modified.tv_sec, modified.tv_nsec)
  }

  /// A file whose bytes come from elsewhere.
  ///
  /// - Parameters:
  ///   - mapped: its bytes.
  ///   - name: its name in messages.
  package init(_ mapped: MappedFile, named name: String) {
    (self.mapped, self.name, given, spool, stamp) = (mapped, name, FilePath(name), nil, nil)
    isInPage = false
  }

  /// Whether it is remote.
  package var isFar: Bool { mapped.isFetched }

  /// Opens a file; `-` is standard input.
  ///
  /// - Parameters:
  ///   - argument: its name.
  ///   - isReadAtOnce: whether all of it will be read, so that reading ahead helps.
  ///   - waitsForWriter: whether a pipe that no program has opened to write to it is waited for.
  /// - Throws: ``BackupError`` if it cannot be read.
  package init(_ argument: String, isReadAtOnce: Bool = false, waitsForWriter: Bool = true) throws {
    let path = FilePath(argument)
    let name = argument == "-" ? Self.standardInputName : argument
    var (spool, stamp): (TemporaryFile?, Stamp?)
    var isInPage = false
    mapped = try BackupError.attempting("read \(name)") {
      if argument == "-" { return try Self.spool(.standardInput, name, &spool) }
      let descriptor = try FileDescriptor.open(
        path, .readOnly, options: waitsForWriter ? [.closeOnExec] : [.closeOnExec, .nonBlocking])
      return try descriptor.closeAfter {
        // A folder can be opened, and then neither mapped nor read.
        var status = stat()
        guard unsafe fstat(descriptor.rawValue, &status) == 0, status.st_mode & S_IFMT != S_IFDIR
        else { throw Errno.isDirectory }
        do {
          let file = try MappedFile(descriptor, closing: false, isReadAtOnce: isReadAtOnce)
          stamp = Self.stamp(status)
          guard let archive = ArchivePage.archive(in: file) else { return file }
          isInPage = true
          return archive
        } catch Errno.illegalSeek {
          // Only to open it did not have to wait: a program that writes to it is waited for.
          if !waitsForWriter { _ = fcntl(descriptor.rawValue, F_SETFL, 0) }
          let content = try Self.spool(descriptor, name, &spool)
          guard waitsForWriter || content.count > 0 else { throw BackupError.idlePipe(name) }
          return content
        }
      }
    }
    (given, self.name, self.spool, self.stamp) = (path, name, spool, stamp)
    self.isInPage = isInPage
  }

  /// The content of a compressed file, in a temporary file.
  ///
  /// - Parameters:
  ///   - file: the compressed file.
  ///   - form: what it is compressed with.
  ///   - limit: the most bytes that its content may have.
  /// - Throws: `CompressedStreamError`; ``BackupError`` if there is no room for it.
  package init(decompressing file: InputFile, _ form: CompressedStream, limit: UInt64) throws {
    let spool = try TemporaryFile()
    try file.withBytes { bytes in
      try form.decompress(bytes, limit: limit) { try spool.write($0) }
    }
    (name, given, stamp, isInPage) = (file.name, file.given, nil, false)
    mapped = try spool.map()
    self.spool = spool
  }

  /// Makes sure that the file was not written to since it was opened.
  ///
  /// - Throws: ``BackupError`` if it was, so that what was found out about it is no longer
  ///   valid.
  package func checkUnchanged() throws {
    guard let stamp else { return }
    guard let status = AtomicFile.status(of: given), Self.stamp(status) == stamp else {
      throw BackupError.changedMeanwhile(name)
    }
  }

  /// A path that leads to the same bytes.
  package var path: FilePath { spool?.path ?? given }

  /// How many bytes it has.
  package var count: Int { mapped.count }

  /// Calls `body` with its bytes, of which it reads the first ones only.
  package func withBeginning<Value>(_ body: (Span<UInt8>) -> Value) -> Value {
    mapped.withBytes(reading: [0..<min(count, Self.beginningLength)]) {
      body($0.extracting(first: Self.beginningLength))
    }
  }

  /// How many bytes are read to determine a file's format.
  private static let beginningLength = 64 << 10

  /// Calls `body` with all of its bytes.
  package func withBytes<Value: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try mapped.withBytes(body)
  }

  /// Copies all of it to a temporary file, and maps that.
  private static func spool(
    _ descriptor: FileDescriptor, _ name: String, _ spool: inout TemporaryFile?
  ) throws -> MappedFile {
    let file = try TemporaryFile()
    spool = file
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    while true {
      let count = try BackupError.attempting("read \(name)") {
        try unsafe buffer.withUnsafeMutableBytes { try unsafe descriptor.read(into: $0) }
      }
      if count == 0 { return try file.map() }
      try file.write(buffer.span.extracting(0..<count))
    }
  }
}

extension ArchiveReader {
  /// Opens the file as an archive.
  ///
  /// - Throws: `ArchiveError` as `ArchiveReader.init(path:limits:)` does.
  package convenience init(_ input: InputFile, limits: ArchiveLimits = ArchiveLimits()) throws {
    // A file that lies here may have a writer, which is asked when it is opened by its path.
    if input.isFar || input.isInPage {
      try self.init(input.mapped.archive(), limits: limits)
    } else {
      try self.init(path: input.path, limits: limits)
    }
  }
}
