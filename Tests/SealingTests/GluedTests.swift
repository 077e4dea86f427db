import Age
import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@testable import Sealing

/// A sealed archive, and another behind it.
@Suite struct `Behind a sealed archive` {
  private let owner: Owner
  private let first, sealed, plain: [UInt8]

  init() throws {
    var random = SeededGenerator(printing: 0x91ed_5ea1)
    owner = try Owner()
    let archives = try (0..<3).map { _ in
      try plainArchive((0..<3).map { _ in BackupStep.one(1500, using: &random) })
    }
    first = try owner.sealed(archives[0], piece: 1000, committing: 2)
    sealed = try Owner().sealed(archives[1], piece: 1000)
    plain = archives[2]
  }

  private func further(_ bytes: [UInt8]) -> Int? {
    SealedFrame.furtherArchive(in: MappedFile(copying: bytes))
  }

  private func check(_ glued: [UInt8], _ place: Int, _ comment: Comment) throws {
    #expect(further(glued) == place, comment)
    let expected = ArchiveError(.furtherArchive, offset: UInt64(place))
    let file = SimpleStorage(glued)
    #expect(throws: expected, comment) { try owner.open(file) }
    let other = try Owner().recipient
    var keys = try SealedKeys(file, owner.ring)
    #expect(throws: expected, comment) { try keys.add(other) }
    #expect(throws: expected, comment) { try keys.remove(owner.identity.recipient.text) }
    #expect(file.bytes == glued, comment)
    // The first one is read as it is, and the check says that there are more.
    #expect(try owner.plain(glued) == owner.plain(Array(glued[..<place])), comment)
    let found = try #require(try owner.verification(glued))
    #expect(found.findings.map(\.error).contains(expected), comment)
    #expect(try SealedCheck(MappedFile(copying: glued)).flaws == [expected], comment)
  }

  @Test func `another archive is found, and nothing is written`() throws {
    try check(first + sealed, first.count, "a sealed one")
    try check(first + plain, first.count, "a plain one")
    try check(first + sealed + plain, first.count, "a sealed one and a plain one")
    try check(first + plain + sealed, first.count, "a plain one and a sealed one")
    // The same archive with more in it.
    let file = SimpleStorage(first)
    let storage = try owner.open(file)
    try storage.write([UInt8](repeating: 1, count: 100).span, at: storage.size)
    try storage.commit()
    try check(first + file.bytes, first.count, "a later state")
  }

  @Test func `another archive is found though its beginning is damaged`() throws {
    for damaged in [0, 100, KeySlots.slotLength, KeySlots.slotLength + 100] {
      var second = sealed
      second[damaged] ^= 1
      #expect(further(first + second) == first.count, "byte \(damaged)")
      for index in 0..<KeySlots.length where index >= damaged { second[index] = 0xaa }
      #expect(further(first + second) == first.count, "from byte \(damaged) on")
    }
    // An interrupted write lies before it.
    for count in [1, 100, 500] {
      let torn = first + first[KeySlots.length..<KeySlots.length + count]
      #expect(further(torn + sealed) == torn.count, "\(count) bytes")
      #expect(further(torn + plain) == torn.count, "\(count) bytes")
    }
  }

  @Test func `a copy of itself is no other archive`() throws {
    for copy in [first, Array(first.dropLast(100)), Array(first[..<KeySlots.length])] {
      #expect(further(first + copy) == nil)
      let file = SimpleStorage(first + copy)
      #expect(try owner.open(file).everything() == owner.plain(first))
    }
    #expect(further(first) == nil)
    // Bytes that were put in between its key frames.
    let (slot, rest) = (first[..<KeySlots.slotLength], first[KeySlots.slotLength...])
    for count in [1, 8192, 20_000] {
      #expect(further(slot + [UInt8](repeating: 0xaa, count: count) + rest) == nil)
    }
  }

  @Test func `what an interrupted write has left is no other archive`() throws {
    for end in stride(from: KeySlots.length, to: first.count, by: 37) {
      #expect(further(Array(first[..<end])) == nil, "\(end)")
    }
    // Its first piece is about to be written over.
    let file = SimpleStorage(first, keepsWrites: true)
    let storage = try owner.open(file)
    try storage.write([UInt8](repeating: 7, count: 10).span, at: 20)
    let replacement = try #require(file.writes.first)
    for count in stride(from: 1, through: replacement.count, by: 11) {
      #expect(further(first + replacement[..<count]) == nil, "\(count)")
    }
  }

  @Test func `frames in a blob of a plain archive do not count`() throws {
    let blob = BackupStep([.append(.section(sealed))])
    let decoy = try plainArchive([blob])
    try check(first + decoy + sealed, first.count, "a plain one with a sealed one in it")
  }
}
