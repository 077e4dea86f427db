package import IPLD

/// Takes in the sections of an archive while its frames are examined, so that nothing has to be
/// decompressed for it once more.
package struct FrameIntake: Sendable {
  /// The sections of a frame that holds, each of which was hashed.
  package struct Sections: Sendable {
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

  /// What is done with what came of a frame, in the order of the file.
  package typealias Delivery = @Sendable () throws -> Void

  /// Looks at the sections of a frame, on whichever thread.
  ///
  /// Of a section that has several frames it is called with the first.
  let read: @Sendable (Sections) -> Delivery

  /// An intake that reads frames like this.
  package init(_ read: @escaping @Sendable (Sections) -> Delivery) { self.read = read }
}
