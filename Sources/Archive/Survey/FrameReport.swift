package import IPLD

/// What the examination of one data frame came to.
package struct FrameReport: Sendable {
  /// A section that begins in the frame, by its place among those that do.
  package struct Found: Sendable {
    package let index: Int
    package let key: UInt64
  }

  /// A large section of several frames that ended, well or not.
  package struct Ended: Sendable {
    /// Its CID; nil if the frame that says it does not hold.
    package let cid: CID?
    package let verification: Multihash.Verification
  }

  /// Why the frame does not hold; nil if it does.
  package var failure: ArchiveError?
  /// What is wrong with it although it holds: another form than the one it should have.
  package var flaws: [ArchiveError] = []
  /// The XXH64 of its stored bytes.
  package var checksum: UInt64 = 0
  /// Whether the section that begins in it goes on in the next.
  package var isContinued = false
  /// Whether it goes on with a section that began in an earlier frame.
  package var isContinuation = false
  /// The keys of the sections that begin in it, if it holds.
  package var keys: [UInt64] = []
  /// The numbers, in ``keys``, of sections that did not prove to hash to their CIDs.
  package var unproved: [Int] = []
  /// The sections of it that hash to their CIDs, if it does not hold.
  package var salvaged: [Found] = []
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
  /// The large section that ends here.
  package var ended: Ended?
}
