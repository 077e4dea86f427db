internal import IPLD
package import SystemPackage

/// Verifies an archive: every byte of what is committed, by every check that there is for it.
///
/// It finds whether the file is tiled by frames in their one form; whether stored bytes and content
/// have their checksums; whether each section hashes to its CID and none is there twice; whether
/// the index is, bit for bit, what the frames make it; and whether the footers tell the truth. It
/// goes on behind damage, so that what it reports is all there is.
package struct ArchiveVerifier: Sendable {
  /// How much is looked at.
  package typealias Depth = Survey.Depth

  private let reader: ArchiveReader
  private let workers: Int

  /// A verifier of the archive at `path`.
  ///
  /// - Throws: ``ArchiveError`` if the file cannot be read, is no archive, or needs a later
  ///   version.
  package init(path: FilePath, workers: Int? = nil) throws {
    self.init(try ArchiveReader(path: path), workers: workers)
  }

  /// A verifier of what this reader reads.
  package init(_ reader: ArchiveReader, workers: Int? = nil) {
    self.reader = reader
    self.workers = max(1, workers ?? Parallel.processorCount)
  }

  /// Verifies the archive.
  ///
  /// - Parameters:
  ///   - depth: How much.
  ///   - progress: Called now and then with the bytes that are done and those there are.
  /// - Throws: nothing about what is wrong with the archive: that is in the answer.
  /// - Returns: What was found.
  package func verify(
    _ depth: Depth = .full, progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws -> ArchiveVerification {
    try verify(depth, intake: nil, progress: progress)
  }

  /// Verifies the archive, and has the sections taken in that are found meanwhile.
  package func verify(
    _ depth: Depth, intake: FrameIntake?, progress: (UInt64, UInt64) -> Void
  ) throws -> ArchiveVerification {
    let survey = try Survey(
      reader.file, depth: depth, limits: reader.limits,
      workers: workers, intake: intake, progress: progress)
    var audit = SurveyAudit(survey, reader, isComplete: depth == .full)
    try reader.file.withBytes { (bytes) throws in try audit.run(in: bytes) }
    return audit.verification
  }
}
