internal import Archive
internal import Files
package import SystemPackage

/// When an archive was last verified, and the verdict.
///
/// It is kept beside the content of the file, in the extended attribute `user.carpack.verified`:
/// the time, the verdict, and how many bytes were committed then, with a space between. It says
/// something of this file on this medium, so it is right that most ways to copy a file leave it
/// behind. Where the file system or the file's owner does not allow it there is none.
package struct VerificationMark: Equatable, Sendable {
  /// When it was verified, in RFC 3339 and UTC.
  package let time: String
  /// The verdict.
  package let verdict: SnapshotVerifier.Verdict
  /// How many bytes were committed then.
  package let committedLength: UInt64

  private static let attribute = FileAttribute(name: "user.carpack.verified")

  /// A mark of these parts.
  package init(time: String, verdict: SnapshotVerifier.Verdict, committedLength: UInt64) {
    self.time = time
    self.verdict = verdict
    self.committedLength = committedLength
  }

  /// Reads what `text` says; nil if that is not a mark.
  init?(_ text: String) {
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 3, Moment(String(parts[0])) != nil,
      let verdict = SnapshotVerifier.Verdict(rawValue: String(parts[1])),
      let length = UInt64(parts[2])
    else { return nil }
    self.init(time: String(parts[0]), verdict: verdict, committedLength: length)
  }

  /// The mark of a file; nil if it has none.
  package init?(of path: FilePath) {
    guard let text = Self.attribute.read(path) else { return nil }
    self.init(text)
  }

  /// Sets the mark of a file, if the file system allows it.
  ///
  /// - Returns: Whether it did.
  @discardableResult
  package func put(on path: FilePath) -> Bool {
    Self.attribute.write("\(time) \(verdict.rawValue) \(committedLength)", to: path)
  }
}
