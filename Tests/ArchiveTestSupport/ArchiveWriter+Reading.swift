package import Archive
package import IPLD

extension ArchiveWriter {
  /// Appends a section whose body is read piece by piece, unless it is there already, and returns
  /// its number.
  ///
  /// The body goes straight to the end of the file, is hashed on the way, and is cut off again if
  /// it is not the right one or `next` throws. About one frame of 4 MiB is in memory at a time,
  /// twice: as it is and as it is stored.
  ///
  /// - Parameters:
  ///   - cid: Its CID.
  ///   - length: How long the body is going to be.
  ///   - next: Puts the next bytes of the body into the array, which is empty when it is called,
  ///     and none at the end.
  /// - Throws: ``ArchiveError`` with the reason `contentMismatch` or `lengthMismatch`; what `next`
  ///   throws; what the storage throws.
  /// - Returns: The number of the section.
  @discardableResult
  package mutating func append(
    _ cid: CID, length: UInt64, reading next: (inout [UInt8]) throws -> Void
  ) throws -> UInt64 {
    if let ordinal = try begin(cid, length: length) { return ordinal }
    var piece: [UInt8] = []
    do {
      repeat {
        piece.removeAll(keepingCapacity: true)
        try next(&piece)
        try take(piece.span)
      } while !piece.isEmpty
      return try finish()
    } catch {
      try cancel()
      throw error
    }
  }
}
