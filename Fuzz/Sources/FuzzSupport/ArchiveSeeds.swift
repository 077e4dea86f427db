import Archive
import IPLD
import SystemPackage

/// Small archives of every sort that a writer makes.
package enum ArchiveSeeds {
  /// The bytes of each.
  package static func all() throws -> [[UInt8]] {
    let text = Array("A record says something, and says it again and again and again. ".utf8)
    let zeros = [UInt8](repeating: 0, count: 66_000)
    let magic: [UInt8] = [
      0xf0, 0x9f, 0x9a, 0x97, 0xf0, 0x9f, 0x93, 0xa6, 0xfe, 0xc9, 0x8a, 0xe5, 0xb1, 0xd7, 0x9c,
      0x83,
    ]
    let texts = (0..<20).map { text + text + Array("\($0)".utf8) }
    let noise = (0..<6).map { number in (0..<40).map { UInt8(($0 * 89 + number * 31) & 0xff) } }
    let bodies: [[[UInt8]]] = [
      [], [[]], [[1, 2, 3]], noise, texts, noise + texts, [magic + magic], [zeros],
      [zeros + zeros] + noise,
    ]
    var archives: [[UInt8]] = []
    for sections in bodies {
      for manifest in [nil, [0xa0] as [UInt8]] {
        archives.append(try archive(sections, manifest: manifest))
      }
    }
    archives.append(try archive(noise, manifest: nil, flushing: true))
    archives.append(try archive(texts, manifest: [0xa0], flushing: true))
    archives.append(try archive([zeros] + texts, manifest: [0xa0], flushing: true))
    // One that takes two frames; each run of it takes longer than a thousand of others.
    let large = [UInt8](repeating: 7, count: (4 << 20) + 100)
    archives.append(try archive([large] + noise, manifest: nil))
    return archives
  }

  private static func archive(
    _ bodies: [[UInt8]], manifest: [UInt8]?, flushing: Bool = false
  ) throws -> [UInt8] {
    let path = File.scratch("seed")
    try? File.remove(path)
    let root = CID(codec: .dagCBOR, hashing: [0xa0].span)
    var writer = try ArchiveWriter.open(
      try FileStorage.create(path), carHeader: CARHeader(roots: [root]).bytes,
      options: ArchiveOptions(workers: 1))
    for (number, body) in bodies.enumerated() {
      try writer.append(CID(codec: .raw, hashing: body.span), body.span)
      if flushing, number % 2 == 1 { try writer.flush() }
    }
    var head: CID?
    if let manifest {
      let cid = CID(codec: .dagCBOR, hashing: manifest.span)
      try writer.append(cid, manifest.span)
      head = cid
    }
    _ = try writer.commit(manifest: head)
    defer { try? File.remove(path) }
    return try File.read(path)
  }
}
