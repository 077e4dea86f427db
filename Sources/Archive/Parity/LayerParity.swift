internal import IPLD

/// Parity for the bytes of a file that holds an archive otherwise than as it is, such as a sealed
/// one (FORMAT 9.6).
///
/// The writer of such a file puts the frames of each group into a frame of the file's own kind. A
/// group protects everything from where the frame around the group before it ends, and no footer.
package struct LayerParity: Sendable {
  /// How many bytes of that frame come before those of the group, and after them.
  private let before, behind: Int

  /// - Parameters:
  ///   - before: How many bytes of the frame around a group come before those of the group.
  ///   - behind: How many come behind them.
  package init(before: Int, behind: Int) { (self.before, self.behind) = (before, behind) }

  /// How much parity a group has whose frame ends at a place, in percent; nil if none ends there.
  package func percent(endingAt place: Int, in file: MappedFile) -> Int? {
    let end = place - behind
    guard end > 0 else { return nil }
    return file.withBytes(reading: [max(0, end - ParityPlan.usuallyRead)..<end]) {
      ParityGroup.page(endingAt: end, in: $0)?.percent
    }
  }

  /// The groups that protect a range, with the bytes of each one's frames.
  ///
  /// - Parameters:
  ///   - range: What is protected beside what is protected already before it. Small groups that end
  ///     where it begins are merged into the new ones.
  ///   - percent: How much parity there is for it.
  ///   - file: The file, which ends where the range does.
  ///   - write: Called with the place of the frame around a group, the number of bytes of the
  ///     group, and what gives them piece by piece.
  /// - Throws: ``ArchiveError`` if the library for parity is not installed; what `write` throws.
  package func protect(
    _ range: Range<Int>, percent: Int, in file: MappedFile,
    _ write: (Int, Int, (_ take: (Span<UInt8>) throws -> Void) throws -> Void) throws -> Void
  ) throws {
    var range = UInt64(range.lowerBound)..<UInt64(range.upperBound)
    if !file.isFetched {
      let history = ParityHistory(file: file, around: (before, behind))
      range =
        try history.start(mergingBefore: range.lowerBound, to: range.upperBound)..<range.upperBound
    }
    var place = Int(range.upperBound)
    for piece in ParityPlan.pieces(of: range, percent: percent) {
      let group = ParityGroup(
        protecting: piece, footerLength: 0, percent: percent, at: UInt64(place + before))
      var encoder = try ParityEncoder(group, of: file, footer: [])
      try write(place, group.region.count) { try encoder.write($0) }
      place = Int(group.end) + behind
    }
  }

  /// Makes parity anew in its place, after some bytes that it protects were written over.
  ///
  /// Also that which no longer counts: what was there could be made again from it.
  ///
  /// - Parameters:
  ///   - places: What was written over.
  ///   - file: The file as it is then.
  ///   - write: As of ``protect(_:percent:in:_:)``.
  /// - Throws: ``ArchiveError`` if the library for parity is not installed, or there is so much
  ///   parity that no writer has made it; what `write` throws.
  package func renew(
    over places: [Range<Int>], in file: () throws -> MappedFile,
    _ write: (Int, Int, (_ take: (Span<UInt8>) throws -> Void) throws -> Void) throws -> Void
  ) throws {
    var (changed, work) = (places, UInt64(0))
    for found in try FoundParity.every(in: file()) {
      let group = found.group
      let range = Int(group.range.lowerBound)..<Int(group.range.upperBound)
      let frame = Int(group.offset) - before..<Int(group.end) + behind
      // Another archive that was put behind this one has its own.
      guard found.shifts.contains(0), frame.lowerBound >= 0,
        try frame.upperBound <= file().count, changed.contains(where: range.overlaps)
      else { continue }
      work += UInt64(range.count)
      guard try work <= UInt64(file().count).multipliedSaturated(by: FoundParity.maximumWork)
      else { throw ArchiveError(.malformedParity("there is too much of it"), offset: group.offset) }
      var encoder = try ParityEncoder(group.masked(0), of: file(), footer: [])
      try write(frame.lowerBound, group.region.count) { try encoder.write($0) }
      changed.append(frame)
    }
  }

  /// Where the frames of the groups lie that still count.
  package static func regions(in file: MappedFile) -> [Range<Int>] {
    FoundParity.all(in: file).map { Int($0.group.offset)..<Int($0.group.end) }
  }

  /// What parity can heal of a file; nil if it has none.
  ///
  /// - Throws: ``ArchiveError`` if the library for parity is not installed.
  package static func assess(_ file: MappedFile) throws -> ParityHealing.Report? {
    guard !file.isFetched else { return nil }
    let found = FoundParity.all(in: file)
    guard !found.isEmpty else { return nil }
    return try ParityAlignment(file)?.report ?? ParityHealing.assess(file, found)
  }

  /// Heals what parity can heal of a file.
  ///
  /// - Parameters:
  ///   - storage: The file; it is locked.
  ///   - intact: Frames that hold, ascending. Where one of them would become another, the group was
  ///     made before that was written, and is left as it is.
  /// - Returns: How many bytes were written.
  /// - Throws: ``ArchiveError`` if the library for parity is not installed; what the storage
  ///   throws.
  package static func heal(_ storage: any ArchiveStorage, sparing intact: [Range<Int>]) throws
    -> ParityHealing.Report
  {
    try ParityHealing.heal(storage, FoundParity.all(in: storage.map()), sparing: intact)
  }
}
