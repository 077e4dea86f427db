import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

/// A manifest as far as a writer knows one, so that a generation can have a head.
func manifest(_ number: Int, after previous: CID?) throws -> (CID, [UInt8]) {
  let map: IPLDMap = [
    "carpack": .integer(1), "car": .map([:]), "commit": .link(CID(codec: .raw, hashing: [1].span)),
    "prev": previous.map { .link($0) } ?? .null, "number": .integer(Int128(number)),
  ]
  let bytes = try DAGCBOREncoder.encode(.map(map))
  return (CID(codec: .dagCBOR, hashing: bytes.span), bytes)
}

/// An archive in memory to which generations are appended, and everything that is in it.
final class AppendedArchive {
  let storage = MemoryStorage()
  var bodies: [CID: [UInt8]] = [:]
  var generations: [Generation] = []

  func open(_ options: ArchiveOptions = ArchiveOptions()) throws -> ArchiveWriter {
    try ArchiveWriter.open(storage, carHeader: SampleArchive.header, options: options)
  }

  /// Appends these bodies and, if asked for, a manifest.
  @discardableResult
  func append(_ bodies: [[UInt8]], isSnapshot: Bool = true, _ options: ArchiveOptions = .init())
    throws -> Generation
  {
    var writer = try open(options)
    for body in bodies { try add(body, .raw, to: &writer) }
    var head: CID?
    if isSnapshot {
      let (cid, bytes) = try manifest(generations.count, after: generations.last?.head?.cid)
      try add(bytes, .dagCBOR, to: &writer)
      head = cid
    }
    let generation = try writer.commit(manifest: head)
    generations.append(generation)
    return generation
  }

  private func add(_ body: [UInt8], _ codec: Codec, to writer: inout ArchiveWriter) throws {
    let cid = CID(codec: codec, hashing: body.span)
    try writer.append(cid, body.span)
    bodies[cid] = body
  }

  func reader() throws -> ArchiveReader { try ArchiveReader(try storage.map()) }

  /// Everything that was appended comes back, and the verifier finds nothing.
  func check(_ comment: Comment = "", at location: SourceLocation = #_sourceLocation) throws {
    let reader = try reader()
    #expect(
      reader.generation.sectionCount == UInt64(bodies.count), comment, sourceLocation: location)
    for (cid, body) in bodies where try reader.body(of: cid) != body {
      Issue.record("\(comment): \(cid) is not what it was", sourceLocation: location)
    }
    let found = try reader.verify(workers: 1)
    #expect(found.findings == [], comment, sourceLocation: location)
  }
}
