import Archive
import ArchiveTestSupport
import IPLD
import SystemPackage
import TestSupport
import Testing

extension TemporaryFolder {
  /// The bytes of an archive in this folder, with damage in the frames in which sections begin.
  func damaging(_ cids: [CID], in path: FilePath) throws -> [UInt8] {
    var bytes = try read(try #require(path.lastComponent).string)
    let reader = try ArchiveReader(path: path)
    for cid in cids {
      let ordinal = try #require(try reader.ordinal(of: cid))
      try reader.withFile { file in
        let index = try ArchiveIndex(reader.generation, in: file)
        guard let frame = index.row(of: ordinal, in: file)?.entry else { return }
        // Nothing of a small frame is left.
        for place in stride(from: 20, to: Int(frame.storedLength), by: 7) {
          bytes[Int(frame.offset) + place] ^= 0x55
        }
      }
    }
    return bytes
  }
}
