package import IPLD

/// What the examination of one data frame came to.
package struct FrameReport: Sendable {
  /// Why the frame does not hold; nil if it does.
  package var failure: ArchiveError?
  /// What is wrong with it although it holds: another form than the one it should have.
  package var flaws: [ArchiveError] = []
  /// The XXH64 of its stored bytes.
  package var checksum: UInt64 = 0
  /// Whether it goes on with a section that began in an earlier frame.
  package var isContinuation = false
  /// The keys of the sections that begin in it, if it holds.
  package var keys: [UInt64] = []
  /// The sections of it that hash to their CIDs, if it does not hold: the number of each among those
  /// that begin in it, and its key.
  package var salvaged: [(index: Int, key: UInt64)] = []
  /// How many sections it seems to have had, if it does not hold and their lengths add up; 0 if
  /// they do not.
  package var likelyCount = 0
  /// The CIDs of sections that can be told apart and do not hash to them.
  package var damaged: [CID] = []
  /// The CIDs of sections that nobody can verify.
  package var unverifiable: [CID] = []
  /// The section of the frame, if it is its only one and has the shape of a manifest.
  package var manifest: ManifestShape?
  /// What is done with its sections, in the order of the file.
  var delivery: FrameIntake.Delivery?
  /// The large section of several frames that ends here, well or not; its CID is nil if the frame
  /// that says it does not hold.
  package var ended: (cid: CID?, verification: Multihash.Verification)?
}
