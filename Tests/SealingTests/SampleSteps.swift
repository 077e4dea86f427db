import Archive
import ArchiveTestSupport
import IPLD
import TestSupport

/// What archives of these tests begin with: a CAR header with one root.
let carHeader: [UInt8] = {
  let root = CID(codec: .dagCBOR, hashing: [0xa0].span)
  var map: [UInt8] = [0xa2, 0x65]
  map += Array("roots".utf8) + [0x81, 0xd8, 0x2a, 0x58, 0x25, 0x00] + root.bytes
  map += [0x67] + Array("version".utf8) + [0x01]
  return [UInt8(map.count)] + map
}()

extension BackupStep {
  /// Does what is asked with the archive in a storage, and commits.
  @discardableResult
  func perform(on storage: any ArchiveStorage) throws -> Generation {
    var writer = try ArchiveWriter.open(
      storage, carHeader: carHeader, options: ArchiveOptions(workers: 1))
    for action in actions {
      switch action {
      case .flush: try writer.flush()
      case .checkpoint: try writer.checkpoint()
      case .append(let block): try writer.append(block.cid, block.bytes.span)
      case .stream(let block, let piece):
        var done = 0
        try writer.append(block.cid, length: UInt64(block.bytes.count)) { bytes in
          let next = min(done + piece, block.bytes.count)
          bytes += block.bytes[done..<next]
          done = next
        }
      case .breakOff(let block, let count):
        guard try writer.begin(block.cid, length: UInt64(block.bytes.count)) == nil else { break }
        try writer.take(block.bytes.span.extracting(first: count))
        try writer.cancel()
      }
    }
    let manifest = try manifest(after: writer.generation?.head?.cid)
    if let manifest { try writer.append(manifest.cid, manifest.bytes.span) }
    return try writer.commit(manifest: manifest?.cid)
  }

  /// A step with one section of some bytes.
  static func one(_ length: Int, using random: inout SeededGenerator) -> BackupStep {
    BackupStep([.append(.section(random.bytes(length)))], nonce: random.next() >> 1)
  }
}

/// A plain archive of some generations.
func plainArchive(_ steps: [BackupStep]) throws -> [UInt8] {
  let file = SimpleStorage()
  for step in steps { try step.perform(on: file) }
  return file.bytes
}
