package import ATProtocol
package import Archive
package import Files
package import IPLD

/// A repository that was inspected and found to be one that can be packed, with the CAR that its
/// blocks make up: sections of a file, and after them sections that the archive has.
package struct CheckedRepository: Sendable {
  /// What was found out.
  package let inspection: RepositoryInspection
  /// The commit.
  package let commit: Commit
  /// The header of its CAR, with its length in front.
  package let header: [UInt8]
  /// The SHA-256 of its CAR.
  package let sha256: SHA256Digest
  /// How many bytes its CAR has.
  package let byteCount: UInt64
  /// The file; nil if the archive has every block.
  package let file: CARFile?
  /// Where the sections begin that are taken from the file, in their order; nil for all.
  package let selection: [Int]?
  /// The ordinal of each of them in the archive, `UInt64.max` for those that are missing; or why
  /// that is not known.
  package let ordinals: Result<[UInt64], any Error>
  /// The sections of the archive that follow.
  package let stored: [Range<UInt64>]
  /// The length of a block that the repository has; nil if it does not have it.
  package let lengthOfBlock: @Sendable (CID) -> UInt64?

  /// Inspects a CAR, and finds out on another core meanwhile what does not depend on the result.
  ///
  /// - Parameters:
  ///   - car: the file.
  ///   - archive: where it is going to be packed, if that is there.
  ///   - isHashed: whether its blocks were found to hash to their CIDs already.
  ///   - observer: called with the progress.
  /// - Throws: `CARError`, `RepositoryError` or ``BackupError`` if it is not one to pack.
  package init(
    _ car: MappedFile, archive: ArchiveReader?, isHashed: Bool = false,
    observer: @escaping Progress.Observer
  ) throws {
    let digest = try Self.digest(of: car)
    let file = try CARFile(car, verifying: !isHashed) { done in
      observer(Progress(stage: "checking", done: UInt64(done), total: UInt64(car.count)))
    }
    try self.init(file, archive: archive, digest) { RepositoryInspection(of: file) }
  }

  /// The SHA-256 of a CAR, computed on another core.
  package static func digest(of car: MappedFile) throws(CARError) -> Meanwhile<SHA256Digest> {
    let payload = try car.withBytes { bytes throws(CARError) in
      try CARVersion2.payload(of: bytes)
    }
    return Meanwhile { car.withBytes { SHA256.digest(of: $0.extracting(payload)) } }
  }

  /// A whole CAR that has been read.
  ///
  /// - Parameters:
  ///   - file: the CAR.
  ///   - archive: where it is going to be packed, if that is there.
  ///   - digest: its SHA-256.
  ///   - inspect: inspects it.
  package init(
    _ file: CARFile, archive: ArchiveReader?, _ digest: Meanwhile<SHA256Digest>,
    _ inspect: () -> RepositoryInspection
  ) throws {
    // The others inspect.
    let ordinals = Meanwhile { Self.ordinals(of: file, nil, in: archive, workers: 1) }
    inspection = inspect()
    commit = try Self.check(inspection)
    let payload = inspection.payload
    header = file.file.withBytes {
      $0.array(payload.lowerBound..<payload.lowerBound + file.header.length)
    }
    (self.file, selection, stored) = (file, nil, [])
    byteCount = UInt64(payload.count)
    lengthOfBlock = { file.length(of: $0) }
    sha256 = digest.value
    self.ordinals = ordinals.value
  }

  /// A repository that is put together from parts of a file and of the archive.
  ///
  /// - Parameters:
  ///   - inspection: what was found out about these blocks.
  ///   - source: where they are.
  ///   - blocks: the blocks of the source that the repository has.
  ///   - file: the file.
  ///   - selection: the blocks that are taken from it, in their order.
  ///   - archive: where it is going to be packed.
  ///   - stored: the sections of the archive that follow.
  ///   - header: the header of its CAR, with its length in front; nil for one that names the
  ///     commit.
  package init(
    _ inspection: RepositoryInspection, of source: some BlockSource, _ blocks: BlockSet,
    file: CARFile?, selection: [Int], archive: ArchiveReader?, stored: [Range<UInt64>] = [],
    header: [UInt8]? = nil
  ) throws {
    let starts = selection.map { file?.start(of: $0) ?? 0 }
    commit = try Self.check(inspection)
    let header = header ?? CARHeader(roots: Array(inspection.header.roots.prefix(1))).bytes
    var hash = SHA256()
    var byteCount = 0
    func take(_ bytes: Span<UInt8>) {
      hash.update(bytes)
      byteCount += bytes.count
    }
    take(header.span)
    if let file {
      for start in starts {
        file.withSection(at: start) { take($0.extracting($1.start..<$1.end)) }
      }
    }
    try archive?.copyCAR(stored, to: take)
    var found = inspection
    found.distinctBlockCount = blocks.count
    (self.inspection, self.header, self.byteCount) = (found, header, UInt64(byteCount))
    (self.file, self.selection, self.stored) = (file, starts, stored)
    lengthOfBlock = { cid in
      source.number(of: cid).flatMap { blocks.contains($0) ? source.bodyLength($0) : nil }
    }
    sha256 = hash.finish()
    ordinals = file.map { Self.ordinals(of: $0, starts, in: archive) } ?? .success([])
  }

  /// How many sections are taken from the file.
  package var newCount: Int { selection?.count ?? file?.sectionCount ?? 0 }

  /// How many sections its CAR has.
  package var sectionCount: UInt64 { stored.reduce(UInt64(newCount)) { $0 + UInt64($1.count) } }

  /// Where in the file a section begins that is taken from it.
  package func start(_ index: Int) -> Int { selection?[index] ?? file?.start(at: index) ?? 0 }

  /// The blobs to which those of its records refer that the archive does not have; nil if that is
  /// not known.
  package func blobsOfNewRecords() -> Set<CID>? {
    guard let file, case .success(let ordinals) = ordinals, ordinals.count == newCount else {
      return nil
    }
    var scanner = RecordScanner()
    var found: Set<CID> = []
    for index in ordinals.indices where ordinals[index] == .max {
      file.withSection(at: start(index)) { bytes, section in
        // What is not a record refers to no blob.
        _ = scanner.scan(bytes.extracting(section.bodyRange)) { found.insert($0.cid) }
      }
    }
    return found
  }

  private static func ordinals(
    of file: CARFile, _ selection: [Int]?, in archive: ArchiveReader?, workers: Int? = nil
  ) -> Result<[UInt64], any Error> {
    Result {
      // In an archive without a footer nothing is committed, so no number is sure to stay.
      guard let archive, archive.generation.number > 0 else { return [] }
      return try archive.ordinals(selection?.count ?? file.sectionCount, workers: workers) {
        index in
        let start = selection?[index] ?? file.start(at: index)
        return file.file.withBytes { CARSection.cid(at: start, in: $0) }
      }
    }
  }

  /// The commit of a repository that may be packed.
  private static func check(_ inspection: RepositoryInspection) throws -> Commit {
    if let error = inspection.carError { throw error }
    if let error = inspection.commitFlaw { throw error }
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
    // What is damaged is said before what is too long.
    if let error = inspection.tooLong { throw error }
    return commit
  }
}
