import ATProtocol
import Archive
import Files
import IPLD
import Snapshots
import SystemPackage
import TestSupport
import Testing

@Suite struct `An error` {
  private struct Unknown: Error {}

  @Test(
    arguments: [
      (ArchiveError(.system(operation: "read", code: 5)), .system),
      (ArchiveError(.changedMeanwhile), .system),
      (ArchiveError(.writerFailed(.init(Errno.noSpace))), .system),
      (ArchiveError(.damagedFrame("x")), .damage), (ArchiveError(.lostSection(1)), .damage),
      (ArchiveError(.bodyTooLarge(.blob([1]), length: 2, limit: 1)), .limit),
      (ArchiveError(.tooMuchContent(limit: 1)), .limit),
      (ArchiveError(.unsupportedVersion(2)), .refused), (ArchiveError(.locked), .refused),
      (FetchFailure(.absent, "x"), .system), (Errno.noSpace, .system),
      (CancellationError(), .system),
      (CARError(.truncatedSection, offset: 1), .damage),
      (CARError(.blockTooLong(.blob([1]), length: 1), offset: 1), .limit),
      (RepositoryError.noRoot, .damage),
      (RecordProofFault.tooLong, .limit),
      (RecordProofFault.notACAR(CARError(.sectionTooLong(limit: 1), offset: 0)), .limit),
      (SnapshotError.blockMissing(.blob([1])), .damage),
      (SnapshotError.notPacked(.blob([1])), .absence),
      (BackupError.notFound("x"), .absence), (BackupError.notGenuine("x"), .notGenuine),
      (BackupError.tooLarge(2, limit: 1), .limit), (BackupError.system("x", 5), .system),
    ] as [(any Error, FaultKind)])
  func `says of which kind it is`(error: any Error, kind: FaultKind) {
    #expect(error.faultKind == kind)
    #expect(error.isLoss == (kind == .damage || kind == .absence))
  }

  @Test func `is about what was read unless it is of the system or of a limit`() throws {
    #expect(throws: Errno.noSpace) { try Errno.noSpace.flaw() }
    let limit = ArchiveError(.bodyTooLarge(.blob([1]), length: 2, limit: 1))
    #expect(throws: limit) { try limit.flaw() }
    #expect(try ArchiveError(.truncated).flaw() == "the file is truncated")
    #expect(Unknown().faultKind == nil)
    #expect(try Unknown().flaw() == "Unknown()")
  }

  @Test func `of a writer has the one before it`() {
    let error = ArchiveError(.writerFailed(.init(Errno.noSpace)))
    #expect("\(error)".contains("\(Errno.noSpace)"))
    guard case .writerFailed(let cause) = error.reason else { return }
    #expect(cause?.error as? Errno == .noSpace)
    #expect(error == ArchiveError(.writerFailed(.init(Errno.noSpace))))
    #expect(error != ArchiveError(.writerFailed(nil)))
  }
}
