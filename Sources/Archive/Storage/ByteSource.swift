/// Bytes of a remote file, fetched range by range.
package protocol ByteSource: Sendable {
  /// Fetches ranges, and passes on their bytes.
  ///
  /// - Parameters:
  ///   - ranges: Which, ascending, none empty, and none beyond the end.
  ///   - take: Called with an offset and the bytes from there on. What it is given of one range
  ///     comes in order; the ranges may come in parallel, from several threads.
  /// - Throws: ``FetchFailure`` if not all of them came; what `take` throws.
  func fetch(
    _ ranges: [Range<UInt64>], _ take: @escaping @Sendable (UInt64, [UInt8]) throws -> Void) throws

  /// Fetches ranges into the memory that holds the file.
  ///
  /// - Parameters:
  ///   - ranges: As above.
  ///   - memory: The whole file, the only thing written to; bytes that are missing become zeros.
  /// - Throws: ``FetchFailure`` if not all of them came.
  func fetch(_ ranges: [Range<UInt64>], into memory: UnsafeMutableRawBufferPointer) throws

  /// The file as it is kept, whose archive these bytes are; nil if they are that file.
  var stored: MappedFile? { get }

  /// Where in that file another archive begins, after the first; nil if none does.
  var furtherArchive: Int? { get }

  /// Whether each fetch is slow, so that no more is fetched than requested.
  var isFar: Bool { get }

  /// What is wrong with how the bytes are stored, apart from their content.
  ///
  /// - Throws: ``FetchFailure``.
  func flaws() throws -> [ArchiveError]

  /// Which of these bytes were committed, and are not what was written: they are damage, and not
  /// the end of a write that was not finished.
  ///
  /// - Throws: What reading throws.
  func damaged(in range: Range<UInt64>) throws -> [Range<UInt64>]

  /// The same bytes, with what can be read of damaged ones instead of zeros; nil if this is never
  /// more.
  ///
  /// Nothing proves that these are what was written, and anyone who knows that may have changed them:
  /// only what a hash proves may be taken from them.
  var unproven: (any ByteSource)? { get }

  /// How much parity there is for the bytes as they are kept, in percent; nil if there is none.
  var parityPercent: Int? { get }

  /// What this parity can heal; nil if there is none.
  ///
  /// - Throws: ``ArchiveError`` if the library for it is not installed; ``FetchFailure``.
  func assessParity() throws -> ParityHealing.Report?
}

extension ByteSource {
  /// By ``fetch(_:_:)``, with a copy.
  package func fetch(_ ranges: [Range<UInt64>], into memory: UnsafeMutableRawBufferPointer) throws {
    // The ranges do not overlap, and the memory is there until the call returns.
    nonisolated(unsafe) let memory = unsafe memory
    try fetch(ranges) { offset, bytes in
      let range = Int(offset)..<Int(offset) + bytes.count
      unsafe UnsafeMutableRawBufferPointer(rebasing: memory[range]).copyBytes(from: bytes)
    }
  }

  /// Nil.
  package var stored: MappedFile? { nil }

  /// Nil.
  package var furtherArchive: Int? { nil }

  /// True.
  package var isFar: Bool { true }

  /// Nothing: they are kept as they are.
  package func flaws() throws -> [ArchiveError] { [] }

  /// None: what was committed is known by a footer alone.
  package func damaged(in range: Range<UInt64>) throws -> [Range<UInt64>] { [] }

  /// Nil: all bytes are as they are.
  package var unproven: (any ByteSource)? { nil }

  /// Nil: what protects the archive is in it.
  package var parityPercent: Int? { nil }

  /// Nil.
  package func assessParity() throws -> ParityHealing.Report? { nil }
}

/// Why bytes of a remote file could not be fetched.
package struct FetchFailure: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kind of failure.
  package enum Kind: Sendable {
    /// The server cannot be reached, or cannot answer now; it may answer later.
    case temporary
    /// The server cannot answer, now or later.
    case unavailable
    /// The given address is not valid; nothing was requested.
    case noAddress
    /// The proxy's setting is not valid; nothing was requested.
    case noProxy
    /// Nothing exists at the address.
    case absent
    /// The server does not let this user read it.
    case forbidden
    /// It was replaced by something else while it was read.
    case replaced
    /// The server's answer is not what was requested, or not allowed.
    case refused
    /// There is no room for the fetched bytes, or they cannot be stored.
    case noRoom
  }

  /// The kind of failure.
  package let kind: Kind
  /// What happened, and where, for people.
  package let description: String
  /// The status of the server's answer; nil if there was none.
  package let status: Int?
  /// The server's name for it, such as `ExpiredToken`; nil if it gave none.
  package let code: String?

  /// A failure.
  package init(_ kind: Kind, _ description: String, status: Int? = nil, code: String? = nil) {
    (self.kind, self.description, self.status, self.code) = (kind, description, status, code)
  }
}
