import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@testable import Archive

@Suite struct `The note behind frame 0 of an archive` {
  private let note = ArchiveNote.frame
  /// Where the note of a sample lies.
  private let place: Range<Int>

  init() throws {
    var header: [UInt8] = []
    let content = SampleArchive.header
    DataFrame.appendRaw(content.span, to: &header)
    place = header.count..<header.count + note.count
  }

  private func sample(_ seed: UInt64, generations: Int = 3) throws -> AppendedArchive {
    var random = SeededGenerator(printing: seed)
    let archive = AppendedArchive()
    for _ in 0..<generations { try archive.append((0..<9).map { _ in random.text(90) }) }
    #expect(Array(archive.storage.bytes[place]) == note)
    return archive
  }

  @Test func `is short, in ASCII, and holds the magic once`() throws {
    #expect(note.count <= 400 && ArchiveNote.text.utf8.allSatisfy { $0 < 0x80 })
    let frame = try SkippableFrame(note.span, at: 0)
    #expect(frame.kind == 3 && frame.length == note.count && frame.holds(in: note.span))
    #expect(ArchiveMagic.next(in: note.span) == 8)
    #expect(ArchiveMagic.next(in: note.span, from: 9) == nil)
  }

  @Test func `is said to be damaged, and made again where it lay, byte for byte`() throws {
    let archive = try sample(0x707e1)
    let bytes = archive.storage.bytes
    var random = SeededGenerator(printing: 0x707e2)
    var damages = place.map {
      ($0..<$0 + 1, [bytes[$0] ^ UInt8.random(in: 1...255, using: &random)])
    }
    damages.append((place, [UInt8](repeating: 0, count: note.count)))
    damages.append((place, random.bytes(note.count)))
    let footer = Int(archive.generations[2].footerOffset)
    for (range, filling) in damages {
      for isFooterDamaged in [false, true] {
        var damaged = bytes
        damaged.replaceSubrange(range, with: filling)
        if isFooterDamaged { damaged[footer + 90] ^= 1 }
        archive.storage.bytes = damaged
        let reader = try archive.reader()
        for depth in [Survey.Depth.quick, .full] {
          let found = try reader.verify(depth, workers: 1)
          if found.isIntact { Issue.record("\(range): \(depth) finds nothing") }
        }
        let report = try ArchiveRepair.run(archive.storage)
        #expect(report.isNoteRestored && report.firstLost == nil && !report.isUnchanged)
        #expect(report.footers.count == (isFooterDamaged ? 1 : 0) && !report.isReindexed)
        if archive.storage.bytes != bytes { Issue.record("\(range): \(report)") }
      }
    }
    #expect(try !ArchiveRepair.run(archive.storage).isNoteRestored)
  }

  @Test func `is not written where a section may have been`() throws {
    var archive = HandMadeArchive()
    var random = SeededGenerator(printing: 0x707e3)
    // A frame that is as long as the note, and then is none.
    let first = random.bytes(note.count - 52)
    for body in [first, random.bytes(300)] {
      archive.addPack([(CID(codec: .raw, hashing: body.span), body)])
    }
    let uncommitted = archive.bytes
    #expect(uncommitted[place.upperBound...].starts(with: [0x28, 0xb5, 0x2f, 0xfd]))
    try archive.addSegment()
    try archive.addFooter()
    for whole in [archive.bytes, uncommitted] {
      var damaged = whole
      damaged.replaceSubrange(place.prefix(12), with: [UInt8](repeating: 0, count: 12))
      let storage = MemoryStorage(damaged)
      if whole == uncommitted {
        #expect(throws: ArchiveError(.noFooter)) { try ArchiveRepair.run(storage) }
        #expect(storage.bytes == damaged)
      } else {
        // The index knows its place, so it is found and written again.
        let report = try ArchiveRepair.run(storage)
        #expect(!report.isNoteRestored && report.firstLost == nil && report.sectionsHealed > 0)
      }
    }
  }

  @Test func `is not added to an archive that has none`() throws {
    var archive = HandMadeArchive()
    archive.addPack([(CID(codec: .raw, hashing: [1].span), [1])])
    try archive.addSegment()
    try archive.addFooter()
    let storage = MemoryStorage(archive.bytes)
    #expect(try ArchiveRepair.run(storage).isUnchanged)
    var writer = try ArchiveWriter.open(storage, carHeader: SampleArchive.header)
    try writer.append(CID(codec: .raw, hashing: [2].span), [2].span)
    _ = try writer.commit(manifest: nil)
    #expect(storage.bytes.starts(with: archive.bytes))
    #expect(try ArchiveReader(storage.map()).verify(workers: 1).findings == [])
  }

  @Test func `is whole, whatever a loss of power left of the first write`() throws {
    let whole = try sample(0x707e4, generations: 1)
    let bytes = whole.storage.bytes
    let begun = Array(bytes[..<place.upperBound])
    let bodies = whole.bodies.sorted { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }
    for length in 0...place.upperBound {
      for filling in [0, 700] {
        var left = Array(bytes[..<length])
        left += [UInt8](repeating: 0, count: length > 0 ? filling : 0)
        // A file that is not told of yet may be begun again; frame 0 is enough to continue with it.
        for startsOver in length < place.lowerBound ? [true] : [true, false] {
          let storage = MemoryStorage(left, hasLostPower: true)
          var options = ArchiveOptions()
          options.startsOver = startsOver
          if length > 0, length >= place.lowerBound {
            #expect(try !ArchiveReader(storage.map()).hasContent)
          }
          var writer = try ArchiveWriter.open(
            storage, carHeader: SampleArchive.header, options: options)
          #expect(writer.adoptedSectionCount == 0 && storage.bytes == begun)
          for (cid, body) in bodies { try writer.append(cid, body.span) }
          _ = try writer.commit(manifest: nil)
          let found = try ArchiveReader(storage.map()).verify(workers: 1)
          if !found.findings.isEmpty { Issue.record("\(length) bytes, \(filling): \(found)") }
        }
      }
    }
  }
}
