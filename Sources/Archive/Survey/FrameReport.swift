package import IPLD

/// The result of the examination of one data frame.
package struct FrameReport: Sendable {
  /// Why the frame does not hold; nil if it does.
  package var failure: ArchiveError?
  /// What is wrong with it although it holds: another form than the one it should have.
  package var flaw: ArchiveError?
  /// The XXH64 of its stored bytes.
  package var checksum: UInt64 = 0
  /// Whether it continues a section that began in an earlier frame.
  package var isContinuation = false
  /// The keys of the sections that begin in it, if it holds.
  package var keys: [UInt64] = []
  /// The sections of it that hash to their CIDs, if it does not hold: the number of each among
  /// those that begin in it, and its key.
  package var salvaged: [(index: Int, key: UInt64)] = []
  /// How many sections it seems to have had, if it does not hold and their lengths add up; 0 if
  /// they do not.
  package var likelyCount = 0
  /// The CIDs of sections that can be told apart and do not hash to them.
  package var damaged: [CID] = []
  /// The CIDs of sections that cannot be verified.
  package var unverifiable: [CID] = []
  /// The section of the frame, if it is its only one and has the shape of a manifest.
  package var manifest: ManifestShape?
  /// What is done with its sections, in the order of the file.
  var delivery: (@Sendable () throws -> Void)?
  /// The large section of several frames that ends here, well or not; its CID is nil if the frame
  /// that says it does not hold.
  package var ended: (cid: CID?, verification: Multihash.Verification)?
}

/// Takes in the sections of an archive while its frames are examined, so that nothing has to be
/// decompressed for it once more.
///
/// It looks at the sections of a frame, on whichever thread, and returns what is then done with
/// them, which is called in the order of the file. For a section with several frames, it is called
/// with the first.
package typealias FrameIntake = @Sendable (FrameSections) -> @Sendable () throws -> Void

/// The sections of a frame that holds, each of which was hashed.
package struct FrameSections: Sendable {
  /// What the frame holds.
  package let content: [UInt8]
  /// Their CIDs, in order.
  package let cids: [CID]
  /// Where in the content each body lies; of a section that has frames of its own, nowhere.
  package let bodies: [Range<Int>]
  /// The length of each body.
  package let bodyLengths: [UInt64]

  /// Where in the content the sections with these numbers lie; nil for one that has frames of its
  /// own.
  package func range(_ numbers: Range<Int>) -> Range<Int>? {
    guard !content.isEmpty else { return nil }
    let start = numbers.lowerBound > 0 ? bodies[numbers.lowerBound - 1].upperBound : 0
    return start..<bodies[numbers.upperBound - 1].upperBound
  }
}
