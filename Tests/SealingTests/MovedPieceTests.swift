import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@testable import Sealing

/// What someone without a key may do with pieces that are whole.
enum Meddling: String, CaseIterable, CustomTestStringConvertible {
  case swapped, moved, repeated, repeatedAtEnd, dropped, foreign, older, tableRepeated

  var testDescription: String { rawValue }

  /// Does it with the pieces of a file.
  func change(_ file: inout SealedFile, _ other: SealedFile, _ random: inout SeededGenerator) {
    let pieces = file.numbers(.piece)
    let (first, second) = (pieces[1], pieces[Int.random(in: 2..<pieces.count - 1, using: &random)])
    switch self {
    case .swapped: file.frames.swapAt(first, second)
    case .moved: file.frames.insert(file.frames.remove(at: first), at: second)
    case .repeated: file.frames.insert(file.frames[first], at: second)
    case .repeatedAtEnd: file.frames.append(file.frames[first])
    case .dropped: file.frames.remove(at: second)
    case .foreign: file.frames[second] = other.frames[other.numbers(.piece)[2]]
    case .older: file.frames[second] = file.frames[first]
    case .tableRepeated: file.frames.append(file.frames[file.numbers(.table)[0]])
    }
  }
}

@Suite struct `Pieces of a sealed archive that somebody has moved` {
  private let owner: Owner
  private let plain: [UInt8]
  private let file, other: SealedFile
  private let contents: ArchiveContents

  init() throws {
    var random = SeededGenerator(seed: 5)
    owner = try Owner()
    plain = try plainArchive((0..<6).map { _ in BackupStep.one(1500, using: &random) })
    let sealed = try owner.sealed(plain, piece: 1000, committing: 2)
    file = SealedFile(sealed)
    // Another archive under the same identity, as one that was made of this one has it.
    let second = SimpleStorage()
    let source = try #require(owner.map(sealed).source as? SealedSource)
    let storage = try SealedStorage(
      creating: second, source.identity, KeySlots(source.file), parity: nil)
    for start in stride(from: 0, to: 5000, by: 1000) {
      try storage.write(random.bytes(1000).span, at: UInt64(start))
      try storage.synchronize()
    }
    other = SealedFile(second.bytes)
    contents = try ArchiveContents(of: ArchiveReader(MappedFile(copying: plain)))
  }

  @Test(arguments: Meddling.allCases, [true, false])
  func `are found, and never read as what they are not`(_ kind: Meddling, _ isRenumbered: Bool)
    throws
  {
    for seed in 0..<8 {
      var random = SeededGenerator(seed: UInt64(seed))
      var changed = file
      kind.change(&changed, other, &random)
      if isRenumbered { try changed.renumber() }
      #expect(try owner.verification(changed.bytes)?.isIntact != true)
      try check(changed.bytes, isPlainSame: kind != .dropped && kind != .tableRepeated)
      // Whoever takes away the tables, too, is found out by what the archive says itself.
      guard kind != .tableRepeated else { continue }
      var bare = file.withoutTables
      kind.change(&bare, other, &random)
      if isRenumbered { try bare.renumber() }
      #expect(try owner.verification(bare.bytes)?.isIntact != true)
      try check(bare.bytes, isPlainSame: false)
    }
  }

  /// Checks that each byte is what it was, or zero, and each section, or an error.
  private func check(_ bytes: [UInt8], isPlainSame: Bool) throws {
    let read = try owner.plain(bytes)
    if isPlainSame {
      #expect(read.count == plain.count)
      #expect(zip(read, plain).allSatisfy { $0 == $1 || $0 == 0 })
    }
    do {
      let reader = try ArchiveReader(owner.map(bytes))
      for section in contents.sections {
        do {
          let body = try reader.body(of: section.cid)
          #expect(body == nil || body == section.bytes)
        } catch is ArchiveError {}
      }
    } catch is ArchiveError {}
  }

  @Test func `are found by their table alone where nothing in the archive would tell`() throws {
    // All bytes are the same, and so no checksum of the archive could differ.
    var same = SealedFile(try owner.sealed([UInt8](repeating: 7, count: 5000), piece: 1000))
    same.frames.swapAt(1, 3)
    try same.renumber()
    let map = try owner.map(same.bytes)
    #expect(try SealedFlaws.of(map).count == 2)
    #expect(map.withBytes { $0[1500] } == 0)
  }
}

/// What is wrong with how the bytes of a file are kept.
enum SealedFlaws {
  static func of(_ map: MappedFile) throws -> [ArchiveError] { try map.source?.flaws() ?? [] }
}
