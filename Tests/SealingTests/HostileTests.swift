import Age
import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@testable import Sealing

/// A table with whatever numbers.
private struct ForgedTable {
  var pieceCount: UInt64
  var plainCount: UInt64
  var olderCount: UInt32
  var count: UInt32
  var older: [(offset: UInt64, length: UInt32, count: UInt32)] = []
  var pieces: [(offset: UInt64, length: UInt32, count: UInt32)] = []

  init(
    _ pieces: [(UInt64, UInt32, UInt32)], older: [(UInt64, UInt32, UInt32)] = [],
    pieceCount: UInt64? = nil, plainCount: UInt64? = nil, olderCount: UInt32? = nil,
    count: UInt32? = nil
  ) {
    self.pieceCount = pieceCount ?? UInt64(pieces.count)
    self.plainCount = plainCount ?? pieces.reduce(0) { $0 + UInt64($1.2) }
    self.olderCount = olderCount ?? UInt32(older.count)
    self.count = count ?? UInt32(pieces.count)
    (self.pieces, self.older) = (pieces.map { ($0, $1, $2) }, older.map { ($0, $1, $2) })
  }

  /// The frame of it, sealed to the archive.
  func frame(_ identity: AgeIdentity) throws -> [UInt8] {
    var bytes = try identity.secret(for: "carpack table").withBytes { $0.array(0..<$0.count) }
    bytes.append(littleEndian: pieceCount)
    bytes.append(littleEndian: plainCount)
    bytes.append(littleEndian: olderCount)
    bytes.append(littleEndian: count)
    for (number, row) in (older + pieces).enumerated() {
      bytes.append(littleEndian: row.offset)
      bytes.append(littleEndian: row.length)
      bytes.append(littleEndian: row.count)
      if number >= older.count { bytes += [UInt8](repeating: 3, count: 32) }
    }
    let sealed = try AgeFile.seal(bytes.span, for: [identity.recipient])
    return SealedFrame.bytes(.table, number: 0, plainOffset: 0, reserving: sealed.count) {
      $0 += sealed
    }
  }
}

@Suite struct `A sealed archive that somebody has made to do harm` {
  private let owner: Owner
  private let plain: [UInt8]
  private let bytes: [UInt8]
  private let identity: AgeIdentity

  init() throws {
    var random = SeededGenerator(seed: 6)
    owner = try Owner()
    plain = random.bytes(5000)
    bytes = try owner.sealed(plain, piece: 1000, committing: 2)
    identity = try owner.archiveIdentity(bytes)
  }

  @Test func `is read as it was before a table that says what cannot be`() throws {
    let first = UInt64(KeySlots.length)
    let end = UInt64(bytes.count)
    let tables = [
      ForgedTable([(0, 1300, 1000)]),
      ForgedTable([(first, 1300, 5000)]),
      ForgedTable([(first, 0, 0)]),
      ForgedTable([(first, .max, .max)]),
      ForgedTable([(.max, .max, .max)]),
      ForgedTable([(UInt64(Int.max), 1, 1)]),
      ForgedTable([(end - 10, 1300, 1000)]),
      ForgedTable([(first, 1300, 1000), (first, 1300, 1000)]),
      ForgedTable([(first, 1300, 1000), (first + 1, 1300, 1000)]),
      ForgedTable([(first, 1300, 1000)], plainCount: .max),
      ForgedTable([(first, 1300, 1000)], plainCount: UInt64(Int.max)),
      ForgedTable([(first, 1300, 1000)], plainCount: 0),
      ForgedTable([(first, 1300, 1000)], pieceCount: .max),
      ForgedTable([(first, 1300, 1000)], pieceCount: UInt64(Int.max)),
      ForgedTable([(first, 1300, 1000)], olderCount: .max),
      ForgedTable([(first, 1300, 1000)], count: .max),
      ForgedTable([], pieceCount: 0, plainCount: 0),
      ForgedTable([], older: [(first, 1300, 1)], pieceCount: 1),
      ForgedTable([], older: [(first, .max, .max)], pieceCount: UInt64(UInt32.max)),
      ForgedTable([], older: [(end, 100, 1)], pieceCount: 1),
      ForgedTable(
        [], older: (0..<100).map { _ in (first, 1300, .max) },
        pieceCount: 100 * UInt64(UInt32.max)),
    ]
    for (number, table) in tables.enumerated() {
      let forged = try bytes + table.frame(identity)
      #expect(try owner.plain(forged) == plain, "table \(number)")
      #expect(try owner.open(SimpleStorage(forged)).everything() == plain, "table \(number)")
      let flaws = try SealedFlaws.of(owner.map(forged))
      #expect(!flaws.isEmpty, "table \(number)")
      // Where it is the only one, too.
      var bare = SealedFile(bytes).withoutTables
      bare.frames.append(try table.frame(identity))
      #expect(try owner.plain(bare.bytes) == plain, "table \(number) alone")
    }
  }

  @Test func `is not shortened by a piece that is passed off as a table`() throws {
    let pieces = try SealedLayout(MappedFile(copying: bytes), identity).pieces
    let table = try PieceTable.plaintext([], pieces[..<2], nil, identity)
    for isMarked in [true, false] {
      // An attacker who can have a chosen piece sealed may know all that is in a table but the
      // mark.
      var content = table.withBytes { $0.array(0..<$0.count) }
      if !isMarked { for place in 0..<32 { content[place] = UInt8(place) } }
      let sealed = try AgeFile.seal(content.span, for: [identity.recipient])
      let forged = SealedFrame.bytes(
        .table, number: 5, plainOffset: 5000, reserving: sealed.count
      ) { $0 += sealed }
      var file = SealedFile(bytes)
      file.frames.insert(forged, at: 2)
      file.frames.removeLast(file.frames.count - 3)
      let whole = SealedFile(bytes)
      file.frames += whole.frames[2...].filter { SealedFrame($0.span, at: 0)?.kind == .piece }
      let layout = try SealedLayout(MappedFile(copying: file.bytes), identity)
      #expect(layout.tables.count == (isMarked ? 1 : 0))
      #expect(try owner.plain(file.bytes) == plain)
    }
  }

  @Test func `is read as it was before frames whose lengths and places cannot be`() throws {
    let piece = SealedFile(bytes).frames[0]
    for length in [0, 1, 43, 44, 52, 60, 100_000, UInt32.max - 8, UInt32.max] {
      var frame = Array(piece[..<4])
      frame.append(littleEndian: length)
      frame += piece[8...]
      for number in 1...6 {
        frame.replaceSubrange(24..<25, with: [UInt8(number)])
        for forged in [bytes + frame, bytes + SealedFrame.withChecksum(frame)] {
          #expect(try owner.plain(forged) == plain)
          #expect(try owner.verification(forged)?.isIntact != true)
          _ = try SealedCheck(MappedFile(copying: forged))
        }
      }
    }
    for place in [0, 1, 4999, 5000, 5001, 100_000, 1 << 62, UInt64(Int.max), .max] {
      let forged = bytes + SealedFile.frame(piece, number: .max, plainOffset: place)
      let read = try owner.plain(forged)
      #expect(read.starts(with: plain) && read.count <= bytes.count)
      _ = try SealedCheck(MappedFile(copying: forged))
      _ = try owner.open(SimpleStorage(forged)).everything()
    }
  }

  @Test func `is written by none who says that a piece belongs elsewhere`() throws {
    let pieces = SealedFile.places(bytes)
    let piece = Array(bytes[pieces[0]])
    let places = [0, 28, 8192, UInt64(pieces[1].lowerBound), UInt64(bytes.count), .max, 1 << 62]
    for place in places {
      for content in [piece, [UInt8](repeating: 0, count: 1300), [], Array(piece.dropLast(3))] {
        let frame = SealedFrame.bytes(
          .replacement, number: 0, plainOffset: place, reserving: content.count
        ) { $0 += content }
        let file = SimpleStorage(bytes + frame)
        let storage = try owner.open(file)
        #expect(try storage.everything() == plain)
        #expect(file.bytes.starts(with: bytes))
        try storage.write([1].span, at: UInt64(plain.count))
        try storage.commit()
        #expect(try owner.plain(file.bytes) == plain + [1])
      }
    }
  }

  /// A key frame with whatever it says, and the right checksum.
  private func slot(version: UInt32 = 1, sequence: UInt64 = 9, count: UInt32, _ rest: [UInt8])
    -> [UInt8]
  {
    let head = UInt64(version) | (sequence & 0xffff_ffff) << 32
    let room = KeySlots.slotLength - SealedFrame.emptyLength
    return SealedFrame.bytes(
      .keySlot, number: head, plainOffset: sequence >> 32 | UInt64(count) << 32, reserving: room
    ) { bytes in bytes += rest + [UInt8](repeating: 0, count: room - rest.count) }
  }

  @Test func `says what is wrong with its key frames`() throws {
    let good = Array(bytes[..<KeySlots.slotLength])
    let entries = try KeySlots(MappedFile(copying: bytes)).entries
    func entry(_ bytes: [UInt8], _ count: UInt32? = nil) -> [UInt8] {
      var entry: [UInt8] = []
      entry.append(littleEndian: count ?? UInt32(bytes.count))
      return entry + bytes
    }
    let both = entry(entries[0]) + entry(entries[1])
    let word = Array("AGE-SECRET-KEY-1".utf8)
    let text = try AgeFile.seal(word.span, for: [owner.identity.recipient])
    let bad = [
      slot(count: 0, []), slot(count: 0, both), slot(count: 1, entry(entries[0])),
      slot(count: 3, both), slot(count: .max, both), slot(version: 3, count: 2, both),
      slot(version: 0, count: 2, both), slot(sequence: .max, count: 2, both),
      slot(count: 2, entry(entries[0]) + entry(entries[1], .max)),
      slot(count: 2, entry(entries[0], 8000) + entry(entries[1], 200)),
      slot(count: 2, both + [1]), slot(count: 2, entry([]) + entry([])),
      slot(count: 2, entry(entries[0]) + entry([1, 2, 3])),
      slot(count: 2, entry(entries[0]) + entry(Array(entries[1].dropLast()))),
      slot(count: 2, entry(entries[0]) + entry(text)),
    ]
    // Without the copy, which would open it.
    var tail = bytes[KeySlots.length...]
    KeySlots.forEach(in: MappedFile(copying: bytes)) { start in
      for place in start..<start + KeySlots.slotLength where place >= KeySlots.length {
        tail[place] = 0
      }
    }
    for (number, slot) in bad.enumerated() {
      #expect(throws: SealedError.self, "slot \(number)") { try owner.plain(slot + slot + tail) }
      let check = try SealedCheck(MappedFile(copying: slot + good + tail))
      let isParsed = number >= 12
      #expect(check.flaws.isEmpty == false, "slot \(number)")
      // What cannot be parsed does not hide the other.
      guard !isParsed else { continue }
      #expect(try owner.plain(slot + good + tail) == plain, "slot \(number)")
      #expect(try owner.plain(good + slot + tail) == plain, "slot \(number)")
    }
  }
}
