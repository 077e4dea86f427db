internal import ATProtocol
internal import IPLD
internal import SystemPackage

/// The time of the last backup that found an account's snapshot up to date.
///
/// Such a backup writes nothing to the archive, so the time is kept in the extended attribute
/// `user.carpack.current.DID` of the file: the time and the manifest's CID, with a space between.
struct CurrencyMark: Equatable {
  /// When, in RFC 3339 and UTC.
  let time: String
  /// The CID of the snapshot's manifest, as text.
  let manifest: String

  /// The longest name that an extended attribute can have on Linux, in bytes.
  private static let maximumName = 255

  /// A mark of these parts.
  init(time: String, manifest: CID) {
    self.time = time
    self.manifest = "\(manifest)"
  }

  /// The mark that an archive has for an account; nil if it has none.
  init?(of did: DID, on path: FilePath) {
    guard let text = Self.attribute(did)?.read(path) else { return nil }
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 2, Moment(String(parts[0])) != nil else { return nil }
    (time, manifest) = (String(parts[0]), String(parts[1]))
  }

  /// Puts the mark on an archive, if the file system allows it; without it the next backup asks.
  func put(for did: DID, on path: FilePath) {
    _ = Self.attribute(did)?.write("\(time) \(manifest)", to: path)
  }

  private static func attribute(_ did: DID) -> FileAttribute? {
    let name = "user.carpack.current.\(did)"
    return name.utf8.count <= maximumName ? FileAttribute(name: name) : nil
  }
}

extension ArchivedSnapshot {
  /// When a backup last checked the snapshot against the server; nil if that is not known.
  ///
  /// A snapshot made by `pack` or `fill` was not checked: `pack` has no server, and `fill` does not
  /// ask for the repository. Neither records how many blobs the server lists.
  ///
  /// - Parameter path: the archive.
  func lastCurrent(in path: FilePath) -> Moment? {
    let mark = CurrencyMark(of: snapshot.did, on: path).flatMap { mark in
      mark.manifest == cid.map { "\($0)" } ? Moment(mark.time) : nil
    }
    let isFetched = snapshot.fetched != nil && snapshot.blobs.listed != nil
    let made = isFetched ? Moment(snapshot.createdAt) : nil
    guard let mark, let made else { return mark ?? made }
    return made.begins(before: mark) ? mark : made
  }

  /// Records that a backup found the snapshot up to date.
  func markCurrent(at time: String, in path: FilePath) {
    guard let cid else { return }
    CurrencyMark(time: time, manifest: cid).put(for: snapshot.did, on: path)
  }

  /// Whether a backup checked it within so many seconds before `now`.
  ///
  /// A check in the future does not count: some clock was wrong.
  func wasCurrent(within seconds: Int64, before now: Moment?, in path: FilePath) -> Bool {
    guard let now, let then = lastCurrent(in: path) else { return false }
    return 0...max(0, seconds) ~= now.seconds - then.seconds
  }
}
