internal import IPLD
internal import SystemPackage

/// How much of a file is committed while a writer has it.
///
/// What follows the last footer may be cut off at any moment, and a page of a mapping that is cut
/// off stops the process. So it is read, not mapped.
extension FileDescriptor {
  private static var window: Int { 1 << 20 }

  /// How many bytes up to and including the last footer; nil if no writer has the file, or there is
  /// no footer.
  ///
  /// - Throws: `Errno` as the system gives it.
  func committedLength(size: Int) throws -> Int? {
    guard SystemCalls.isBeingWritten(self) else { return nil }
    var upper = size
    while upper > 0 {
      let lower = max(0, upper - Self.window)
      // The writer may cut it off meanwhile: then there are fewer.
      let end = min(size, upper + ArchiveMagic.length - 1)
      let bytes = try read(end - lower, at: UInt64(lower))
      var search = ArchiveMagic.BackwardSearch(before: upper - lower)
      while let magic = search.next(in: bytes.span) {
        let place = lower + magic - 8
        guard place >= 0 else { continue }
        let length = min(size - place, Footer.maximumLength)
        let candidate = try read(length, at: UInt64(place))
        if let footer = Footer.frame(candidate.span, at: 0, writtenAt: place) {
          return place + footer.length
        }
      }
      upper = lower
    }
    return nil
  }
}
