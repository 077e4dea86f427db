internal import ATProtocol
package import Files
internal import IPLD
package import Snapshots

/// When records were made, as far as their times are plausible: the one rule of all verbs.
package struct RecordTimes {
  /// How many seconds a record may claim to be later than the commit that holds it: clocks differ.
  private static let tolerance: Int64 = 86_400

  /// The time of the commit.
  let commit: Moment?
  /// The times that are plausible, in seconds.
  private let range: ClosedRange<Int64>

  /// The times of a snapshot's records.
  package init(of snapshot: Snapshot) {
    commit = [snapshot.rev.map { Moment($0) }, Moment(snapshot.createdAt)].lazy
      .compactMap(\.self).first { Moment.ofFiles ~= $0.seconds }
    let latest = commit.map { $0.seconds + Self.tolerance } ?? .max
    range = Moment.ofFiles.clamped(to: .min...latest)
  }

  /// When a record was made: the time that it names, or else that of its key; nil if neither is a
  /// plausible time.
  ///
  /// - Parameters:
  ///   - key: the record's key in the tree.
  ///   - createdAt: what the record says.
  package func time(of key: [UInt8], createdAt: String?) -> Moment? {
    if let time = createdAt.flatMap({ Moment($0) }), range ~= time.seconds { return time }
    let rest = FileNaming.parts(of: key).rest
    if rest.count == TID.maximumLength, let tid = try? TID(String(decoding: rest, as: UTF8.self)),
      range ~= Moment(tid).seconds
    {
      return Moment(tid)
    }
    return nil
  }

  /// When a record was made, by its bytes.
  func time(of key: [UInt8], in body: Span<UInt8>) -> Moment? {
    time(of: key, createdAt: Self.createdAt(in: body))
  }

  /// What a record says of when it was made; nil if it does not, or cannot be read.
  static func createdAt(in body: Span<UInt8>) -> String? {
    (try? DAGCBORDecoder.decode(body))?["createdAt"]?.string
  }
}
