internal import Archive
internal import Files
internal import HTTP
internal import ObjectStore
internal import SystemPackage

/// Remembers in the user's cache that a store supports conditional writes, so that it is not probed
/// again for a day.
///
/// A note that was changed, is another store's or is older than a day is ignored. A lack of support
/// is not remembered: the store may be fixed.
extension BucketDestination {
  /// For how many seconds a note is valid: a day.
  private static let lifetime: Int64 = 86_400
  private static let heading = "carpack: a store that obeys conditions, version 1"

  private var probeNote: FilePath { file("obeys", of: client.location) }

  /// Whether the store was found to support conditional writes within the last day.
  var hasObeyed: Bool {
    // A note that cannot be read is none.
    guard let bytes = try? AtomicFile.read(probeNote),
      let time = String(decoding: bytes, as: UTF8.self).split(separator: "\n").last
        .flatMap({ Int64($0) })
    else { return false }
    return bytes == text(time) && time <= Self.now && Self.now < time + Self.lifetime
  }

  /// Notes that the store was now found to support conditional writes.
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
