package import ATProtocol
internal import Archive
package import Files
package import IPLD
package import SystemPackage

/// What a backup learned of an account's newest snapshot without writing to the archive.
///
/// A snapshot for that alone would be noise, so the time is kept beside the content of the file, in
/// the extended attribute `user.carpack.KIND.DID` (the SHA-256 of a DID that is too long for a
/// name): the time and the CID of the manifest that it is about, with a space between. Where there
/// are no such attributes, the next backup asks again, which is all that a mark saves.
package enum ArchiveMark: String {
  /// The snapshot is what the server has.
  case current
  /// The missing blobs were requested again, without success.
  case tried
  /// The handle leads to the account, by the DID document that it is about in place of a manifest.
  case identity

  /// The longest name that an extended attribute can have on Linux, in bytes.
  private static let maximumName = 255

  /// When an account's mark was put on an archive, in RFC 3339 and UTC; nil if it has none about
  /// this manifest.
  package func time(of did: DID, about manifest: CID?, on path: FilePath) -> String? {
    guard let manifest, let text = attribute(did).read(path) else { return nil }
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[1] == "\(manifest)" else { return nil }
    let time = String(parts[0])
    return Moment(time) == nil ? nil : time
  }

  /// Sets the mark of an archive, if the file system allows it.
  package func put(_ time: String, of did: DID, about manifest: CID?, on path: FilePath) {
    guard let manifest else { return }
    _ = attribute(did).write("\(time) \(manifest)", to: path)
  }

  private func attribute(_ did: DID) -> FileAttribute {
    let name = "user.carpack.\(rawValue).\(did)"
    guard name.utf8.count > Self.maximumName else { return FileAttribute(name: name) }
    let digest = SHA256.digest(of: Array(did.text.utf8).span)
    return FileAttribute(name: "user.carpack.\(rawValue).\(digest)")
  }
}

extension ArchivedSnapshot {
  /// When a backup last checked the snapshot against the server; nil if that is not known.
  ///
  /// A snapshot made by `pack` or `fill` was not checked: `pack` has no server, and `fill` does not
  /// ask for the repository. Neither records how many blobs the server lists.
  ///
  /// - Parameter path: the archive.
  package func lastCurrent(in path: FilePath?) -> Moment? {
    let mark = path.flatMap { ArchiveMark.current.time(of: snapshot.did, about: cid, on: $0) }
      .flatMap { Moment($0) }
    let isFetched = snapshot.fetched != nil && snapshot.blobs.listed != nil
    let made = isFetched ? Moment(snapshot.createdAt) : nil
    guard let mark, let made else { return mark ?? made }
    return made.begins(before: mark) ? mark : made
  }

  /// Records that a backup found the snapshot up to date.
  package func markCurrent(at time: String, in path: FilePath) {
    ArchiveMark.current.put(time, of: snapshot.did, about: cid, on: path)
  }

  /// Whether a backup checked it within this many seconds before `now`.
  ///
  /// A check in the future does not count: some clock was wrong.
  package func wasCurrent(within seconds: Int64, before now: Moment?, in path: FilePath) -> Bool {
    guard let now, let then = lastCurrent(in: path) else { return false }
    return 0...max(0, seconds) ~= now.seconds - then.seconds
  }
}

extension Snapshot {
  /// For how long a confirmed handle is not checked again, in seconds: a week.
  private static let freshness: Int64 = 7 * 86_400

  /// Whether the account's handle was confirmed within the last week.
  ///
  /// If that could not be recorded, the snapshot itself counts.
  package func hasFreshIdentity(at now: Moment?, in path: FilePath?) -> Bool {
    let mark = path.flatMap { ArchiveMark.identity.time(of: did, about: didDocument, on: $0) }
    let made = fetched == nil ? nil : createdAt
    guard let now, let then = (mark ?? made).flatMap({ Moment($0) }) else { return false }
    return 0...Self.freshness ~= now.seconds - then.seconds
  }

  /// Records that the account's handle was confirmed.
  package func markIdentity(at time: String, in path: FilePath) {
    ArchiveMark.identity.put(time, of: did, about: didDocument, on: path)
  }
}
