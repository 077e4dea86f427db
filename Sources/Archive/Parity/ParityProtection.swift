/// Protecting archives with parity, and what their parity can do.
extension ArchiveWriter {
  /// The result of protecting an archive: what is committed now, and by how many bytes it grew; 0
  /// if all of it was protected already.
  package typealias Protection = (generation: Generation, bytesAdded: UInt64)

  /// Makes sure that parity can be written.
  ///
  /// - Throws: ``ArchiveError`` if the library for it is not installed.
  package static func requireParityLibrary() throws(ArchiveError) {
    _ = try ErasureLibrary.opened()
  }

  /// Protects an archive with parity, by one more generation, and with it all that is appended from
  /// then on.
  ///
  /// What is protected with as much parity already is left as it is.
  ///
  /// - Parameters:
  ///   - storage: The archive; it is locked.
  ///   - percent: How much parity to write, 1 to 100.
  /// - Throws: ``ArchiveError`` if nothing is committed, something is damaged, or the library for
  ///   parity is not installed; what the storage throws.
  package static func protect(_ storage: any ArchiveStorage, percent: Int) throws -> Protection {
    var options = ArchiveOptions()
    options.parity = percent
    var writer = try reopen(storage, options: options)
    guard let generation = writer.generation, let reader = writer.reader else {
      throw ArchiveError(.noFooter)
    }
    // Parity of damaged bytes would keep the damage.
    let findings = try reader.verify(.quick).findings
    if let damage = findings.first(where: { $0.severity == .damaged }) { throw damage.error }
    if let bytesAdded = try storage.protect(percent: percent) { return (generation, bytesAdded) }
    let end = generation.committedLength
    let groups = try FoundParity.all(in: storage.map()).map(\.group)
    var ranges = [0..<end]
    if groups.allSatisfy({ $0.percent == percent }) {
      let covered = groups.flatMap { [$0.range, $0.offset..<$0.footer.upperBound] }.merged()
      ranges = covered.gaps(in: 0..<end)
    }
    guard !ranges.isEmpty || !generation.features.isProtected else { return (generation, 0) }
    if ranges.isEmpty { ranges = [generation.footerOffset..<end] }
    writer.log.parity = .ranges(percent, ranges)
    return try writer.orAbandon { writer in
      let protected = try writer.commit(manifest: nil)
      return (protected, protected.committedLength - end)
    }
  }
}

extension ArchiveReader {
  /// How much parity protects what is appended, in percent; nil if none does.
  package var parityPercent: Int? {
    if let percent = file.source?.parityPercent { return percent }
    guard generation.features.isProtected else { return nil }
    return ParityPlan.percent(of: generation, in: file)
  }

  /// What parity can restore of the damaged file; nil if it has no parity, or lies elsewhere: a
  /// copy of it is healed.
  ///
  /// For a sealed archive, this is the parity around its pieces, not the parity sealed inside.
  ///
  /// It takes as long as to read the file once, and longer where bytes were inserted or lost.
  ///
  /// - Throws: ``ArchiveError`` if the library for parity is not installed.
  package func assessParity() throws -> ParityHealing.Report? {
    if let report = try file.source?.assessParity() { return report }
    guard !file.isFetched else { return nil }
    let groups = FoundParity.all(in: file)
    guard !groups.isEmpty else { return nil }
    return try ParityAlignment(file)?.report ?? ParityHealing.assess(file, groups)
  }
}
