internal import Archive
internal import Files
internal import HTTP
internal import IPLD
internal import ObjectStore
internal import SystemPackage

/// Remembers in the user's cache that a store was found to obey conditions, so that it is not tried
/// again for a day.
///
/// A note that is not as it was written, is another store's or is not of the last day counts as
/// none. That a store does not obey is not remembered: it may be mended.
struct ProbeNote {
  private let path: FilePath
  private let location: String

  /// For how many seconds a note holds: a day.
  private static let lifetime: Int64 = 86_400
  private static let heading = "carpack: a store that obeys conditions, version 1"

  /// The note about a destination's bucket.
  init(of destination: BucketDestination) {
    location = destination.client.location
    let digest = SHA256.digest(of: Array(location.utf8).span)
    path = destination.cache.appending("\(digest.hexadecimal.prefix(32)).obeys")
  }

  /// Whether the store was found to obey conditions within the last day.
  var isFresh: Bool {
    do {
      guard let bytes = try AtomicFile.read(path) else { return false }
      let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
      guard lines.count == 3, let time = Int64(lines[2]), bytes == text(time) else { return false }
      return time <= Self.now && Self.now < time + Self.lifetime
    } catch {
      // One that cannot be read is none.
      return false
    }
  }

  /// Notes that the store has been found to obey conditions now.
  func write() {
    do {
      let bytes = text(Self.now)
      try AtomicFile.save(to: path, replacing: true, isPrivate: true) { try $0(bytes.span) }
    } catch _ {
      // Without it the store is tried once more.
    }
  }

  private func text(_ time: Int64) -> [UInt8] {
    Array("\(Self.heading)\n\(location)\n\(time)\n".utf8)
  }

  private static var now: Int64 { Int64(SystemClock().unixTime) }
}
