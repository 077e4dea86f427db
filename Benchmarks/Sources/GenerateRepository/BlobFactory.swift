import Foundation
import IPLD

/// Makes the blobs that records refer to.
///
/// With a folder, the bytes are made and written there, each blob under its CID, and the references
/// are true. Without one, only the references are made: their CIDs name nothing.
struct BlobFactory {
  /// How many blobs have been made.
  private(set) var count = 0
  private let folder: URL?
  private let sizes: ClosedRange<Int>

  /// A factory of blobs of these sizes, in bytes.
  init(folder: URL?, sizes: ClosedRange<Int>) throws {
    self.folder = folder
    self.sizes = sizes
    if let folder {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }
  }

  /// A new blob; answers the reference to it.
  mutating func reference(_ mimeType: String, _ random: inout SeededRandom) throws -> IPLDValue {
    count += 1
    let size = random.number(in: sizes)
    let cid: CID
    if let folder {
      let bytes = Self.bytes(size, mimeType, &random)
      cid = CID(codec: .raw, hashing: bytes.span)
      try Data(bytes).write(to: folder.appending(path: "\(cid)"))
    } else {
      cid = random.cid(.raw)
    }
    return .map([
      "$type": .string("blob"), "ref": .link(cid), "mimeType": .string(mimeType),
      "size": .integer(Int128(size)),
    ])
  }

  /// Bytes that begin like a file of their type and cannot be compressed, as the rest of such a
  /// file cannot.
  private static func bytes(_ size: Int, _ mimeType: String, _ random: inout SeededRandom)
    -> [UInt8]
  {
    let start: [UInt8] =
      mimeType == "video/mp4"
      ? [0, 0, 0, 0x18] + Array("ftypmp42".utf8)
      : [0xff, 0xd8, 0xff, 0xe0, 0, 0x10] + Array("JFIF".utf8) + [0, 1, 1, 0, 0, 72, 0, 72, 0, 0]
    return Array((start + random.bytes(max(0, size - start.count))).prefix(size))
  }
}
