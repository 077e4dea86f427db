internal import ATProtocol
package import Files
internal import IPLD
package import Snapshots

/// When records were made, as far as they can be believed.
package struct RecordTimes {
  /// How many seconds a record may claim to be later than the commit that holds it: clocks differ.
  private static let tolerance: Int64 = 86_400

  /// The time of the commit.
  let commit: FileTime?
  private let latest: Int64

  /// The times of a snapshot's records.
  package init(of snapshot: Snapshot) {
    commit = snapshot.rev.flatMap { FileTime($0) } ?? FileTime(snapshot.createdAt)
    latest = commit.map { $0.seconds + Self.tolerance } ?? FileTime.latest
  }

  /// The time that a record names; else that of its key; else that of the commit.
  ///
  /// - Parameters:
  ///   - key: the record's key in the tree.
  ///   - createdAt: what the record says.
  package func time(of key: [UInt8], createdAt: String?) -> FileTime? {
    if let time = believed(createdAt.flatMap { FileTime($0) }) { return time }
    let rest = FileNaming.parts(of: key).rest
    if rest.count == TID.maximumLength,
      let tid = try? TID(String(decoding: rest, as: UTF8.self)),
      let time = believed(FileTime(tid))
    {
      return time
    }
    return commit
  }

  /// What a record says of when it was made; nil if it does not, or cannot be read.
  static func createdAt(in body: Span<UInt8>) -> String? {
    (try? DAGCBORDecoder.decode(body))?["createdAt"]?.string
  }

  private func believed(_ time: FileTime?) -> FileTime? {
    time.flatMap { $0.seconds <= latest ? $0 : nil }
  }
}
