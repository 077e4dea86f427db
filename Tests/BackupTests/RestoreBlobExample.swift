import Archive
import IPLD
import SystemPackage

/// Writes a blob of an archive to a new file; returns whether the archive holds it.
func restoreBlob(_ cid: CID, from archive: FilePath, to file: FilePath) throws -> Bool {
  let reader = try ArchiveReader(path: archive)
  let output = try FileDescriptor.open(
    file, .writeOnly, options: [.create, .exclusiveCreate], permissions: .ownerReadWrite)
  return try output.closeAfter {
    // Every piece comes from a frame whose checksum holds, and at the end the whole has hashed to
    // the CID.
    try reader.read(cid) { piece in
      _ = try unsafe piece.withUnsafeBytes { bytes in try unsafe output.writeAll(bytes) }
    }
  }
}
