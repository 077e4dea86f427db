internal import IPLD
internal import SystemPackage

/// How much of a file is committed while a writer has it.
///
/// What follows the last footer may be cut off at any moment, and a page of a mapping that is cut
/// off stops the process. So it is read, not mapped.
extension FileDescriptor {
  /// How many bytes up to and including the last footer; nil if no writer has the file, or there is
  /// no footer.
  ///
  /// - Throws: `Errno` as the system gives it.
  func committedLength(size: Int) throws -> Int? {
    guard SystemCalls.isBeingWritten(self) else { return nil }
    // The writer may cut it off meanwhile: then fewer bytes come.
    return try ArchiveMagic.last(before: size, of: size) { range in
      try read(range.count, at: UInt64(range.lowerBound))
    } _: { magic in
      let place = magic - 8
      guard place >= 0 else { return nil }
      let candidate = try read(min(size - place, Footer.maximumLength), at: UInt64(place))
      return Footer.frame(candidate.span, at: 0, writtenAt: place).map { place + $0.length }
    }
  }
}
