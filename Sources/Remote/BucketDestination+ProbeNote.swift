internal import Archive
internal import Files
internal import HTTP
internal import ObjectStore
internal import SystemPackage

/// Remembers in the user's cache that a store was found to obey conditions, so that it is not tried
/// again for a day.
///
/// A note that is not as it was written, is another store's or is not of the last day counts as
/// none. That a store does not obey is not remembered: it may be mended.
extension BucketDestination {
  /// For how many seconds a note holds: a day.
  private static let lifetime: Int64 = 86_400
  private static let heading = "carpack: a store that obeys conditions, version 1"

  private var probeNote: FilePath { file("obeys", of: client.location) }

  /// Whether the store was found to obey conditions within the last day.
  var hasObeyed: Bool {
    // A note that cannot be read is none.
    guard let bytes = try? AtomicFile.read(probeNote),
      let time = String(decoding: bytes, as: UTF8.self).split(separator: "\n").last
        .flatMap({ Int64($0) })
    else { return false }
    return bytes == text(time) && time <= Self.now && Self.now < time + Self.lifetime
  }

  /// Notes that the store has been found to obey conditions now.
  func noteObedience() {
    let bytes = text(Self.now)
    // Without it the store is tried once more.
    _ = try? AtomicFile.save(to: probeNote, replacing: true, isPrivate: true) {
      try $0(bytes.span)
    }
  }

  private func text(_ time: Int64) -> [UInt8] {
    Array("\(Self.heading)\n\(client.location)\n\(time)\n".utf8)
  }

  private static var now: Int64 { Int64(SystemClock().unixTime) }
}
