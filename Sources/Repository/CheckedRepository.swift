package import ATProtocol
package import Archive
package import Files
package import IPLD

/// A repository's CAR that was inspected and found to be one that can be packed, with what was
/// found out about it meanwhile.
package struct CheckedRepository: Sendable {
  /// The CAR, in a file.
  package let car: MappedFile
  /// What was found out.
  package let inspection: RepositoryInspection
  /// The commit.
  package let commit: Commit
  /// What was found out on the other core.
  package let lookahead: CARLookahead

  /// Inspects a CAR, and on another core finds out meanwhile what can be without knowing what comes
  /// of that.
  ///
  /// - Parameters:
  ///   - car: the file.
  ///   - archive: where it is going to be packed, if that is there.
  ///   - isHashed: whether its blocks were found to hash to their CIDs already.
  ///   - observer: is told how far it is.
  /// - Throws: `CARError`, `RepositoryError` or ``BackupError`` if it is not one to pack.
  package init(
    _ car: MappedFile, archive: ArchiveReader?, isHashed: Bool = false,
    observer: @escaping Progress.Observer
  ) throws {
    let payload = try car.withBytes { bytes throws(CARError) in
      try CARVersion2.payload(of: bytes)
    }
    let lookahead = Meanwhile { CARLookahead(car, payload: payload, archive: archive) }
    let inspection = try car.withBytes { bytes throws(CARError) in
      try RepositoryInspector.inspect(bytes, verifying: !isHashed) { done in
        observer(Progress(stage: "checking", done: UInt64(done), total: UInt64(car.count)))
      }
    }
    if let error = inspection.carError { throw error }
    if let error = inspection.commitError { throw error }
    if let cid = inspection.mismatchedBlocks.first {
      throw BackupError.malformedRepository(
        "blocks do not hash to their CIDs (\(inspection.mismatchedBlocks.count) of them, the first is \(cid))"
      )
    }
    if let problem = inspection.treeProblems.first {
      throw BackupError.malformedRepository(
        "the tree of records is malformed (problems: \(inspection.treeProblemCount), the first: \(problem))"
      )
    }
    guard let commit = inspection.commit else {
      throw BackupError.malformedRepository("the CAR is not a repository")
    }
    self.car = car
    self.inspection = inspection
    self.commit = commit
    self.lookahead = lookahead.value
  }

  /// The length of a block that the CAR has; nil if it does not have it.
  package func lengthOfBlock(_ cid: CID) -> UInt64? {
    car.withBytes { bytes in
      inspection.blocks.place(of: cid, in: bytes).map {
        UInt64(inspection.blocks.body($0, in: bytes).count)
      }
    }
  }
}
