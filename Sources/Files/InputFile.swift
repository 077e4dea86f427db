package import Archive
internal import IPLD
internal import LibC
package import SystemPackage

/// A file that is read: by its name, or from standard input.
///
/// It is mapped, so that its size does not matter. What cannot be mapped (a pipe, standard input)
/// goes into a temporary file first.
package final class InputFile {
  /// What a message calls standard input.
  package static let standardInputName = "standard input"

  /// What a message calls it.
  package let name: String
  /// Its bytes, for several threads.
  package let mapped: MappedFile
  private let spool: TemporaryFile?
  private let given: FilePath
  /// What the file was when it was opened; nil for one that nobody else can change.
  private let stamp: Stamp?

  /// By what it shows that another process has written to a file, or put another in its place.
  private struct Stamp: Equatable {
    let number: ino_t
    let size: off_t
    let seconds: Int
    let nanoseconds: Int

    init(_ status: stat) {
      number = status.st_ino
      size = status.st_size
      #if canImport(Darwin)
        let modified = status.st_mtimespec
      #else
        let modified = status.st_mtim
      #endif
      seconds = modified.tv_sec
      nanoseconds = modified.tv_nsec
    }
  }

  /// A file whose bytes come from elsewhere.
  ///
  /// - Parameters:
  ///   - mapped: its bytes.
  ///   - name: what a message calls it.
  package init(_ mapped: MappedFile, named name: String) {
    (self.mapped, self.name, given) = (mapped, name, FilePath(name))
    spool = nil
    stamp = nil
  }

  /// Whether it lies elsewhere.
  package var isFar: Bool { mapped.isFetched }

  /// Whether its last bytes are what an archive ends in.
  package var endsAsArchive: Bool { ArchiveReader.hasFooter(atEndOf: mapped) }

  /// Opens a file; `-` is standard input.
  ///
  /// - Parameters:
  ///   - argument: its name.
  ///   - isReadAtOnce: whether all of it is going to be read, so that it had better be brought in
  ///     at once.
  /// - Throws: ``BackupError`` if it cannot be read.
  package init(_ argument: String, isReadAtOnce: Bool = false) throws {
    given = FilePath(argument)
    if argument == "-" {
      name = Self.standardInputName
      let spool = try Self.spool(.standardInput, name)
      mapped = try spool.map()
      self.spool = spool
      stamp = nil
      return
    }
    name = argument
    do {
      let descriptor = try FileDescriptor.open(given, .readOnly, options: [.closeOnExec])
      // A folder can be opened, and then neither mapped nor read.
      var status = stat()
      guard unsafe fstat(descriptor.rawValue, &status) == 0, status.st_mode & S_IFMT != S_IFDIR
      else {
        try descriptor.close()
        throw Errno.isDirectory
      }
      do {
        mapped = try MappedFile(descriptor, closing: false, isReadAtOnce: isReadAtOnce)
        spool = nil
        stamp = Stamp(status)
      } catch Errno.illegalSeek {
        let spool = try Self.spool(descriptor, argument)
        mapped = try spool.map()
        self.spool = spool
        stamp = nil
      }
      try descriptor.close()
    } catch let error as Errno {
      throw BackupError.system("read \(argument)", error.rawValue)
    }
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
    (name, given, stamp) = (file.name, file.given, nil)
    mapped = try spool.map()
    self.spool = spool
  }

  /// Makes sure that nobody has written to the file since it was opened.
  ///
  /// - Throws: ``BackupError`` if it was, so that what was found out about it counts no
  ///   longer.
  package func checkUnchanged() throws {
    guard let stamp else { return }
    var status = stat()
    guard unsafe stat(given.string, &status) == 0, Stamp(status) == stamp else {
      throw BackupError.changedMeanwhile(name)
    }
  }

  /// A path that leads to the same bytes.
  package var path: FilePath { spool?.path ?? given }

  /// How many bytes it has.
  package var count: Int { mapped.count }

  /// Calls `body` with all of its bytes.
  package func withBytes<Value: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try mapped.withBytes(body)
  }

  private static func spool(_ descriptor: FileDescriptor, _ name: String) throws -> TemporaryFile {
    let file = try TemporaryFile()
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    try BackupError.attempting("read \(name)") {
      while true {
        let count = try unsafe buffer.withUnsafeMutableBytes { buffer in
          try unsafe descriptor.read(into: buffer)
        }
        if count == 0 { break }
        try file.write(buffer.span.extracting(0..<count))
      }
      try file.flush()
    }
    return file
  }
}

extension ArchiveReader {
  /// Opens the archive that a file is.
  ///
  /// - Throws: `ArchiveError` as `ArchiveReader.init(path:limits:)` does.
  package convenience init(_ input: InputFile, limits: ReadLimits = ReadLimits()) throws {
    // A file that lies here may have a writer, which is asked when it is opened by its path.
    if input.isFar {
      try self.init(input.mapped, limits: limits)
    } else {
      try self.init(path: input.path, limits: limits)
    }
  }
}
