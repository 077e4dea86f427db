internal import IPLD

/// Checks records one by one and finds the blobs that they refer to, also of those that break the
/// rules.
///
/// In records that cannot be read, blobs are found as far as the bytes can be walked
/// (`TolerantBlobScanner`).
package struct RecordScanner: Sendable {
  /// What is odd about a record.
  package struct Oddities: Sendable {
    /// What is odd, up to the number that is listed at most.
    package private(set) var first: [String] = []
    /// How many odd things there are.
    package private(set) var count = 0
    /// Whether there is a float.
    package fileprivate(set) var hasFloat = false
    /// Whether it cannot be read: it is not DAG-CBOR, or nested too deep.
    package fileprivate(set) var isUnreadable = false
    /// Whether it cannot be read, and may refer to blobs that were not found.
    package fileprivate(set) var mayHideBlobs = false
    /// Whether it only is not in DAG-CBOR's one canonical form.
    package fileprivate(set) var isNonCanonical = false

    fileprivate mutating func add(_ why: String) {
      count += 1
      if first.count < RecordScanner.maximumListed { first.append(why) }
    }
  }

  /// How much is listed of what is odd; beyond that it is counted.
  package static let maximumListed = 1000

  private var strict = BlobRefScanner(profile: .atproto)
  private var lenient = BlobRefScanner(profile: .dagCBOR)
  private var tolerant = TolerantBlobScanner()

  /// A scanner.
  package init() {}

  /// Whether there is nothing to say about a record, at a glance: it keeps the rules, and refers to
  /// no blob.
  package mutating func isPlain(_ record: Span<UInt8>) -> Bool { strict.isPlain(record) }

  /// Hands out the blob references of a record; returns what is odd about it.
  package mutating func scan(_ record: Span<UInt8>, found: (BlobRef) -> Void) -> Oddities {
    var oddities = Oddities()
    do throws(DAGCBORError) {
      let isMap = try strict.scan(record, found: found, malformed: { oddities.add($0) })
      if !isMap { oddities.add("it is not a map") }
    } catch {
      oddities.hasFloat = error.reason == .floatNotAllowed
      var why = "\(error)"
      do throws(DAGCBORError) {
        _ = try lenient.scan(record, found: found)
      } catch {
        oddities.isUnreadable = true
        oddities.isNonCanonical = error.reason.isOnlyNonCanonical
        oddities.mayHideBlobs = !tolerant.scan(record, found: found)
        why = "\(error)"
        if oddities.mayHideBlobs { why += "; it may refer to blobs that are not known" }
      }
      oddities.add(why)
    }
    return oddities
  }
}

extension UnreadableRecords {
  /// Counts a record, if it is one of these.
  package mutating func count(_ oddities: RecordScanner.Oddities) {
    if oddities.isUnreadable { count += 1 }
    if oddities.mayHideBlobs { partlySearchedCount += 1 }
  }
}

extension DAGCBORError.Reason {
  /// Whether bytes that break only this rule would come out of a tolerant decoder and encoder
  /// changed.
  fileprivate var isOnlyNonCanonical: Bool {
    switch self {
    case .notMinimal, .indefiniteLength, .keysNotSorted, .duplicateKey, .shortFloat: true
    default: false
    }
  }
}
