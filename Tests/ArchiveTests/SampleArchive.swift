import Archive
import Foundation
import IPLD
import SystemPackage
import TestSupport

/// An archive made for a test, and what went into it.
struct SampleArchive {
  /// Keeps the file there.
  let folder: TemporaryFolder
  let path: FilePath
  let header: [UInt8]
  private(set) var sections: [(cid: CID, body: [UInt8])] = []
  private(set) var generation: Generation?

  /// What every sample begins with: a CAR header with one root.
  static let header: [UInt8] = {
    let root = CID(codec: .dagCBOR, hashing: [0xa0].span)
    // {"roots": [root], "version": 1}
    var map: [UInt8] = [0xa2, 0x65]
    map += Array("roots".utf8) + [0x81, 0xd8, 0x2a, 0x58, 0x25, 0x00] + root.bytes
    map += [0x67] + Array("version".utf8) + [0x01]
    return [UInt8(map.count)] + map
  }()

  /// Writes an archive of these bodies, raw CIDs, the last as a manifest under DAG-CBOR if asked
  /// for.
  init(
    in folder: TemporaryFolder, name: String = "sample.car.zst", bodies: [[UInt8]],
    manifest: [UInt8]? = nil, options: ArchiveOptions = ArchiveOptions()
  ) throws {
    let sections = bodies.map { (CID(codec: .raw, hashing: $0.span), $0) }
    try self.init(
      in: folder, name: name, sections: sections, manifest: manifest, options: options)
  }

  /// Writes an archive of these sections.
  init(
    in folder: TemporaryFolder, name: String = "sample.car.zst", sections: [(CID, [UInt8])],
    manifest: [UInt8]? = nil, options: ArchiveOptions = ArchiveOptions()
  ) throws {
    self.folder = folder
    path = FilePath(folder.file(name))
    header = Self.header
    var writer = try ArchiveWriter.open(
      try FileStorage.create(path), carHeader: header, options: options)
    for (cid, body) in sections { try writer.append(cid, body.span) }
    self.sections = sections
    var head: CID?
    if let manifest {
      let cid = CID(codec: .dagCBOR, hashing: manifest.span)
      try writer.append(cid, manifest.span)
      self.sections.append((cid, manifest))
      head = cid
    }
    generation = try writer.commit(manifest: head)
  }

  /// The bytes of the file.
  var bytes: [UInt8] {
    get throws { [UInt8](try Data(contentsOf: URL(filePath: path.string))) }
  }

  /// The CAR that the archive must decompress to.
  var stream: [UInt8] {
    var stream = header
    for (cid, body) in sections {
      let bytes = cid.bytes
      Varint.append(UInt64(bytes.count + body.count), to: &stream)
      stream += bytes
      stream += body
    }
    return stream
  }
}
