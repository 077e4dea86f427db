import Archive
import Foundation
import Synchronization
import SystemPackage

/// A remote file, and what was asked of it.
final class CountingSource: ByteSource {
  private let bytes: [UInt8]
  private let asked = Mutex<[Range<Int>]>([])

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// What was fetched, in order; what was requested at once counts once.
  var requests: [Range<Int>] { asked.withLock { $0 } }

  func fetch(
    _ ranges: [Range<UInt64>], _ take: @escaping @Sendable (UInt64, [UInt8]) throws -> Void
  ) throws {
    for range in ranges {
      let range = Int(range.lowerBound)..<Int(range.upperBound)
      asked.withLock { $0.append(range) }
      try take(UInt64(range.lowerBound), Array(bytes[range]))
    }
  }

  /// The file, of which nothing is here.
  func file() throws -> MappedFile {
    let path = FilePath("\(NSTemporaryDirectory())/sealing-\(UUID().uuidString)")
    let scratch = try FileDescriptor.open(
      path, .readWrite, options: [.create, .exclusiveCreate], permissions: .ownerReadWrite)
    try FileManager.default.removeItem(atPath: path.string)
    return try MappedFile(FetchedFile(self, count: bytes.count, scratch: FileScratch(scratch)))
  }
}
