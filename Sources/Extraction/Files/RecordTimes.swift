internal import ATProtocol
internal import Files
internal import Snapshots

/// When records were made, as far as they can be believed.
struct RecordTimes {
  /// How many seconds a record may claim to be later than the commit that holds it: clocks differ.
  private static let tolerance: Int64 = 86_400

  /// The time of the commit.
  let commit: FileTime?
  private let latest: Int64

  /// The times of a snapshot's records.
  init(of snapshot: Snapshot) {
    commit = snapshot.rev.flatMap { FileTime($0) } ?? FileTime(snapshot.createdAt)
    latest = commit.map { $0.seconds + Self.tolerance } ?? FileTime.latest
  }

  /// The time that a record names; else that of its key; else that of the commit.
  ///
  /// - Parameters:
  ///   - key: the record's key in the tree.
  ///   - createdAt: what the record says.
  func time(of key: [UInt8], createdAt: String?) -> FileTime? {
    if let time = believed(createdAt.flatMap { FileTime($0) }) { return time }
    let rest = FileNaming.parts(of: key).rest
    if rest.count == TID.maximumLength {
      do throws(IdentifierError) {
        let tid = try TID(String(decoding: rest, as: UTF8.self))
        if let time = believed(FileTime(tid)) { return time }
      } catch {
        // A key like any other.
      }
    }
    return commit
  }

  private func believed(_ time: FileTime?) -> FileTime? {
    time.flatMap { $0.seconds <= latest ? $0 : nil }
  }
}
