internal import IPLD

extension ArchiveReader {
  /// Verifies the archive: every byte of what is committed, by every check that there is for it.
  ///
  /// It finds whether the file is tiled by frames in their one form; whether stored bytes and
  /// content have their checksums; whether each section hashes to its CID and none is there twice;
  /// whether the index is, bit for bit, what the frames make it; and whether the footers tell the
  /// truth. It continues after damage, so that what it reports is all there is.
  ///
  /// - Parameters:
  ///   - depth: How much is examined.
  ///   - workers: How many threads.
  ///   - intake: Is given the sections that are found.
  ///   - progress: Called now and then with the bytes that are done and those there are.
  /// - Throws: nothing about what is wrong with the archive: that is in the answer.
  /// - Returns: What was found.
  package func verify(
    _ depth: Survey.Depth = .full, workers: Int? = nil, intake: FrameIntake? = nil,
    progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws -> ArchiveVerification {
    let survey = try Survey(
      file, depth: depth, limits: limits, workers: max(1, workers ?? Parallel.processorCount),
      intake: intake, progress: progress)
    var audit = SurveyAudit(survey, self, isComplete: depth == .full)
    // Where something does not hold, places all over the file are read.
    if !(survey.isWhole && survey.isTiled) { file.willReadAll() }
    try file.withBytes(reading: survey.readAgain) { (bytes) throws in try audit.run(in: bytes) }
    var verification = audit.verification
    for flaw in try file.flaws() {
      if case .interruptedTail = flaw.reason {
        verification.note(flaw, .interruptedTail)
      } else {
        verification.note(flaw)
      }
    }
    return verification
  }
}
