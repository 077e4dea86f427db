internal import IPLD
internal import SystemPackage

/// How much of a file is committed while a writer has it.
///
/// What follows the last footer may be cut off at any moment, and a page of a mapping that is cut
/// off stops the process. So it is read, not mapped.
enum CommittedLength {
  private static let window = 1 << 20

  /// How many bytes up to and including the last footer; nil if no writer has the file, or there is
  /// no footer.
  ///
  /// - Throws: `Errno` as the system gives it.
  static func find(_ descriptor: FileDescriptor, size: Int) throws -> Int? {
    guard SystemCalls.isBeingWritten(descriptor) else { return nil }
    var upper = size
    while upper > 0 {
      let lower = max(0, upper - window)
      let bytes = try read(
        descriptor, lower..<min(size, upper + ArchiveMagic.length - 1))
      var search = ArchiveMagic.BackwardSearch(before: upper - lower)
      while let magic = search.next(in: bytes.span) {
        let place = lower + magic - 8
        guard place >= 0 else { continue }
        let candidate = try read(descriptor, place..<min(size, place + Footer.maximumLength))
        if let length = Footer.length(of: candidate.span, writtenAt: place) {
          return place + length
        }
      }
      upper = lower
    }
    return nil
  }

  private static func read(_ descriptor: FileDescriptor, _ range: Range<Int>) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: range.count)
    let count = try unsafe bytes.withUnsafeMutableBytes { buffer in
      var done = 0
      while done < buffer.count {
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
        let step = try unsafe descriptor.read(
          fromAbsoluteOffset: Int64(range.lowerBound + done), into: rest)
        // The writer has cut it off meanwhile.
        if step == 0 { break }
        done += step
      }
      return done
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }
}
