public import IPLD
public import SystemPackage

/// An error about the bytes of an archive, which does not always know of which file they are.
package protocol ArchiveFileError: Error {
  /// The same, said of a file; unless it names one already.
  func of(_ file: String) -> Self
}

/// Why an archive could not be opened, read or written, and at which byte of the file.
public struct ArchiveError: ArchiveFileError, Equatable, Sendable, CustomStringConvertible {
  /// What went wrong.
  package enum Reason: Equatable, Sendable {
    // The file.

    /// A system call failed: what was being done, and the `errno` it left.
    case system(operation: String, code: CInt)
    /// A file that was to be created is already there.
    case alreadyExists(String)
    /// Another process has the archive open for writing.
    case locked
    /// Nothing is committed in the file, and it begins with another CAR header.
    case begunOtherwise
    /// The file's length, or the file under its name, is not what this writer made it.
    case changedMeanwhile
    /// The file ends too early.
    case truncated
    /// No footer is valid: nothing was committed, or the end of the file is lost.
    case noFooter
    /// Bytes that follow the last footer.
    case interruptedTail(bytes: UInt64)
    /// A footer, or part of one, after the last valid one.
    case damagedFooter
    /// Neither a footer nor anything that an archive begins with.
    case notAnArchive
    /// A valid footer that is not where it was written: bytes before it were inserted or
    /// removed.
    case movedFooter
    /// Parity whose checksum matches, but whose content is wrong.
    case malformedParity(String)
    /// The library that parity is made with cannot be used, and why.
    case noErasureLibrary(String)
    /// Another archive begins after the first, in the same file.
    case furtherArchive
    /// Bytes of a sealed archive that are not what was sealed: what they are.
    case damagedSeal(String)
    /// Bytes at the end of an archive that were committed and are not what was written.
    case damagedEnd
    /// A sealed archive ends before its key is whole, so that nothing can be in it.
    case unbegunSeal
    /// Bytes that are not a frame: how many.
    case foreignBytes(UInt64)
    /// The file has more frames than a file of its size can honestly have.
    case tooManyFrames(limit: Int)
    /// The file decompresses to more than a file of its size can honestly hold.
    case tooMuchContent(limit: UInt64)

    // The format.

    /// The file's major version is one that this reader does not know.
    case unsupportedVersion(UInt16)
    /// The file needs features that this reader does not know: their bits.
    case unknownFeatures(UInt64)
    /// A footer's checksum holds and what it says cannot be.
    case malformedFooter(String)
    /// An index segment with wrong content.
    case damagedIndex(String)
    /// A frame in a form that the format does not allow.
    case malformedFrame(String)
    /// A frame whose bytes are not those that were written.
    case damagedFrame(String)
    /// A section whose prefix or place in its frame cannot be.
    case malformedSection(String)

    // Sections.

    /// A section whose bytes do not hash to its CID.
    case damagedSection(CID)
    /// A section under a hash function that is unknown here.
    case unverifiableSection(CID)
    /// A CID that two sections have.
    case repeatedSection(CID)
    /// An ordinal that no section has.
    case unknownOrdinal(UInt64)
    /// The section with this number is lost with damage to the file.
    case lostSection(UInt64)
    /// A body longer than the caller is willing to hold in memory.
    case bodyTooLarge(CID, length: UInt64, limit: UInt64)

    // Writing.

    /// The CAR header is empty, too long, or its varint does not say how long it is.
    case malformedHeader
    /// A CID longer than any that is read back.
    case cidTooLong(Int)
    /// The bytes offered are not the block that the CID names.
    case contentMismatch(CID)
    /// The bytes offered are fewer or more than was announced.
    case lengthMismatch(CID, announced: UInt64, received: UInt64)
    /// More sections in one generation than an index segment can count.
    case tooManySections
    /// The generations' number cannot grow.
    case tooManyGenerations
    /// More sections with one hash, under different CIDs, than is reasonable.
    case tooManyAliases(CID)
    /// The manifest to commit is not in the archive.
    case unknownManifest(CID)
    /// The manifest to commit has a CID that no manifest has.
    case notAManifest(CID)
    /// The manifest to commit shares its frame with other sections.
    case manifestNotAlone(CID)
    /// A section is being received, and nothing else can be appended until it has ended.
    case sectionOpen
    /// No section is being received.
    case noSectionOpen
    /// An earlier write failed, and nothing more may be written: what failed, if that is known.
    case writerFailed(Cause?)
    /// The last sync failed: whether the generation is committed shows when the file is opened
    /// again.
    case commitUncertain(code: CInt)
  }

  /// The error before this one; equal to one that says the same.
  package struct Cause: Equatable, Sendable {
    /// The error.
    package let error: any Error

    /// That error as a cause.
    package init(_ error: any Error) { self.error = error }

    package static func == (one: Cause, other: Cause) -> Bool {
      "\(one.error)" == "\(other.error)"
    }
  }

  /// What went wrong.
  package let reason: Reason
  /// Where in the file, if it is about a place.
  package let offset: UInt64?
  /// Which file, if that is known.
  private var file: String?

  /// An error, with its place if there is one.
  package init(_ reason: Reason, offset: UInt64? = nil) {
    self.reason = reason
    self.offset = offset
  }

  /// An error about a place in a local file.
  init(_ reason: Reason, at place: Int) { self.init(reason, offset: UInt64(clamping: place)) }

  package func of(_ file: String) -> ArchiveError {
    switch reason {
    // The sentence has the path.
    case .system, .alreadyExists: return self
    default:
      var error = self
      error.file = self.file ?? file
      return error
    }
  }

  /// Whether they say the same of a file, whatever it is called.
  public static func == (one: ArchiveError, other: ArchiveError) -> Bool {
    (one.reason, one.offset) == (other.reason, other.offset)
  }

  /// The message for people: one sentence, lower case, without a full stop.
  public var description: String {
    let place = offset.map { ", at byte \($0)" } ?? ""
    return "\(file.map { "\($0): " } ?? "")\(sentence)\(place)"
  }

  private var sentence: String {
    switch reason {
    case .system(let operation, let code): "could not \(operation): \(Errno(rawValue: code))"
    case .alreadyExists(let path): "\(path) exists already"
    case .locked: "another process is writing to the archive"
    case .begunOtherwise:
      "the file has no committed data, only the unfinished archive of another repository"
    case .changedMeanwhile:
      "another program truncated, moved or replaced the archive during the write"
    case .truncated: "the file is truncated"
    case .noFooter: "no valid footer found: nothing was committed, or the end of the file is lost"
    case .interruptedTail(let bytes):
      "\(bytes) bytes of an unfinished write, or foreign bytes, follow what is committed"
    case .damagedFooter: "a footer is damaged, and with it everything that it committed"
    case .notAnArchive: "the file is not a carpack archive"
    case .movedFooter: "bytes were inserted or removed before this footer"
    case .malformedParity(let what): "the parity is malformed: \(what)"
    case .noErasureLibrary(let reason): "parity needs the library ISA-L: \(reason)"
    case .furtherArchive: "another archive begins here, after the first"
    case .damagedSeal(let what): "the sealed archive is damaged: \(what)"
    case .damagedEnd:
      "the end of the archive is damaged: it was committed, and cannot be read"
    case .unbegunSeal: "the sealed archive ends before its key: nothing can be in it"
    case .foreignBytes(let count): "\(count) bytes are not part of the archive"
    case .tooManyFrames(let limit):
      "the archive has more than \(limit) frames, too many for its size (--allow-large reads it)"
    case .tooMuchContent(let limit):
      "the archive holds more than \(limit) bytes of content, too many for its size (--allow-large reads it)"
    case .unsupportedVersion(let major):
      "the archive has format version \(major); this carpack reads version \(Footer.majorVersion)"
    case .unknownFeatures(let bits):
      "the archive needs \(FeatureFlags.describe(bits)), unknown to this version of carpack"
    case .malformedFooter(let what): "the footer is malformed: \(what)"
    case .damagedIndex(let what): "the index is damaged: \(what)"
    case .malformedFrame(let what): "the frame is malformed: \(what)"
    case .damagedFrame(let what): "the frame is damaged: \(what)"
    case .malformedSection(let what): "a section is malformed: \(what)"
    case .damagedSection(let cid): "the bytes stored for \(cid) do not hash to it"
    case .unverifiableSection(let cid):
      "\(cid) has an unknown hash function, so it cannot be verified"
    case .repeatedSection(let cid): "\(cid) is stored twice"
    case .unknownOrdinal(let ordinal): "the archive has no section number \(ordinal)"
    case .lostSection(let ordinal): "section \(ordinal) is lost: its frame is damaged"
    case .bodyTooLarge(let cid, let length, let limit):
      "\(cid) has \(length) bytes; at most \(limit) are read into memory"
    case .malformedHeader: "the CAR header is malformed"
    case .cidTooLong(let length):
      "a CID has \(length) bytes; the limit is \(CID.maximumLength)"
    case .contentMismatch(let cid): "the bytes offered for \(cid) do not hash to it"
    case .lengthMismatch(let cid, let announced, let received):
      "\(announced) bytes were announced for \(cid), but \(received) arrived"
    case .tooManySections: "one generation cannot index that many sections"
    case .tooManyGenerations: "the archive has reached the highest generation number"
    case .tooManyAliases(let cid):
      "over \(ArchiveLimits.aliases) sections have the same hash as \(cid)"
    case .unknownManifest(let cid): "the manifest \(cid) is not in the archive"
    case .notAManifest(let cid):
      "\(cid) cannot be a manifest: its CID is not that of DAG-CBOR with SHA-256"
    case .manifestNotAlone(let cid): "the manifest \(cid) shares its frame with other sections"
    case .sectionOpen: "another section is being received"
    case .noSectionOpen: "no section is being received"
    case .writerFailed(let cause):
      "writing stopped after a failed write\(cause.map { ": \($0.error)" } ?? "")"
    case .commitUncertain(let code):
      "the last sync failed (\(Errno(rawValue: code))): open the archive again to see whether the generation is there"
    }
  }
}

extension ArchiveError: KnownFault {
  /// What it says of the archive.
  public var faultKind: FaultKind {
    switch reason {
    case .system, .changedMeanwhile, .writerFailed, .commitUncertain: .system
    case .truncated, .noFooter, .interruptedTail, .damagedFooter, .notAnArchive, .movedFooter,
      .malformedParity, .furtherArchive, .damagedSeal, .damagedEnd, .unbegunSeal,
      .foreignBytes, .malformedFooter, .damagedIndex, .malformedFrame, .damagedFrame,
      .malformedSection,
      .damagedSection, .repeatedSection, .unknownOrdinal, .lostSection, .malformedHeader:
      .damage
    case .tooManyFrames, .tooMuchContent, .bodyTooLarge, .cidTooLong, .tooManySections,
      .tooManyGenerations, .tooManyAliases:
      .limit
    case .alreadyExists, .locked, .begunOtherwise, .noErasureLibrary, .unsupportedVersion,
      .unknownFeatures, .unverifiableSection, .contentMismatch, .lengthMismatch, .unknownManifest,
      .notAManifest, .manifestNotAlone, .sectionOpen, .noSectionOpen:
      .refused
    }
  }
}

extension FetchFailure: KnownFault {
  /// Nothing of what the file holds.
  package var faultKind: FaultKind { .system }
}

extension Errno: KnownFault {
  /// Nothing of what is in a file.
  public var faultKind: FaultKind { .system }
}
