internal import ATProtocol
package import IPLD
internal import Snapshots

/// A blob that the new server does not have, or not as it is in the archive.
package struct UnrestoredBlob: Sendable, Equatable {
  /// The blob.
  package let cid: CID
  /// The record that refers to it first; nil if none in the snapshot does.
  package let record: String?
  /// Why.
  package let reason: Reason

  /// Why a blob is not there, or not as it should be.
  package struct Reason: Error, Equatable {
    /// A word for a script.
    package let word: String
    /// What a person reads.
    package let sentence: String

    private init(_ word: String, _ sentence: String) {
      (self.word, self.sentence) = (word, sentence)
    }

    /// Why a blob that stands like this in the archive cannot be sent; nil if it can be.
    init?(_ state: BlobState, isAccepted: Bool, limit: UInt64?) {
      switch state {
      case .held(let length):
        guard let limit, length > limit else { return nil }
        self.init("too-large", "it has \(length) bytes, and the server takes \(limit)")
      case .missing: self = isAccepted ? .acceptedAsLost : .notHeld
      case .damaged(let why): self = .damaged(why)
      }
    }

    /// The archive does not hold it.
    static let notHeld = Reason("not-held", "the archive does not hold it")
    /// The archive does not hold it, and its loss is accepted.
    static let acceptedAsLost = Reason(
      "accepted-as-lost", "the archive does not hold it, which was accepted")
    /// The server gives back other bytes.
    static let otherBytes = Reason("other-bytes", "the server gives back other bytes")

    /// It is damaged in the archive.
    static func damaged(_ why: String) -> Reason {
      Reason("damaged", "it is damaged in the archive: \(why)")
    }

    /// The server refused it.
    static func refused(_ why: String) -> Reason {
      Reason("refused", "the server refused it: \(why)")
    }

    /// The server named another CID for it.
    static func otherCID(_ cid: CID) -> Reason {
      Reason("other-cid", "the server calls it \(cid)")
    }

    /// The server does not give it back, and does not list it as missing.
    static func notServed(_ why: String) -> Reason {
      Reason(
        "not-served",
        "the server does not give it back, though it does not list it as missing: \(why)")
    }
  }
}

/// The blobs that are not there, or not as they should be: how many, and the first of them.
package struct UnrestoredBlobs: Sendable {
  /// How many there are.
  package private(set) var count = 0
  /// How many of them the archive does not hold, which is accepted.
  package private(set) var acceptedCount = 0
  /// The first of them.
  package private(set) var first: [UnrestoredBlob] = []

  /// The most blobs that are listed.
  private static let maximumListed = 1000

  /// None.
  package init() {}

  mutating func add(_ cid: CID, of source: RestoreSource, _ reason: UnrestoredBlob.Reason) {
    count += 1
    if reason == .acceptedAsLost { acceptedCount += 1 }
    guard first.count < Self.maximumListed else { return }
    first.append(
      UnrestoredBlob(cid: cid, record: source.blobs[cid]?.firstRecord, reason: reason))
  }

  static func += (blobs: inout Self, more: Self) {
    blobs.count += more.count
    blobs.acceptedCount += more.acceptedCount
    blobs.first += more.first.prefix(maximumListed - blobs.first.count)
  }
}
