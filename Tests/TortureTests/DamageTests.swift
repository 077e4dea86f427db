import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

/// An archive of several generations, small enough to damage every byte of it, and where each of
/// its sections lies.
private struct LayeredArchive {
  let scenario: Scenario
  let file: [UInt8]
  /// For each section, by its number, the stored bytes of its frame.
  let frames: [Range<Int>]

  init(using random: inout SeededGenerator, _ image: ArchiveImage) throws {
    var steps: [BackupStep] = []
    for number in 0..<4 {
      var step = BackupStep(nonce: random.next() >> 1)
      for length in [120, 200, 40] {
        step.actions.append(.append(.section(random.text(length) + random.bytes(4))))
      }
      step.actions.append(number == 2 ? .checkpoint : .flush)
      step.actions.append(.append(.section(random.bytes(150))))
      step.actions.append(.append(.section(ArchiveMagic.bytes + random.bytes(8))))
      // A large section that takes next to no room.
      let large = [UInt8](repeating: UInt8(number), count: 1 << 16) + random.bytes(4)
      if number != 1 { step.actions.append(.append(.section(large))) }
      if let block = steps.last?.sections.randomElement(using: &random) {
        step.actions.append(.append(block))
      }
      steps.append(step)
    }
    scenario = try Scenario(steps, using: image)
    guard let last = scenario.states.last else { throw Unexpected("no steps") }
    let bytes = last.bytes
    let index = try ArchiveIndex(last.generation, in: bytes.span)
    file = bytes
    frames = (0..<last.generation.sectionCount).compactMap { ordinal in
      index.row(of: ordinal, in: bytes.span).map { Int($0.entry.offset)..<Int($0.entry.end) }
    }
    guard frames.count == scenario.sections.count else { throw Unexpected("frames are missing") }
  }

  /// Reads a damaged file in every way: what is not in damaged frames comes back, and nothing comes
  /// back wrong.
  ///
  /// - Returns: The reader, which has been everywhere.
  func check(_ bytes: [UInt8], _ image: ArchiveImage, isWhole: (Range<Int>) -> Bool) throws
    -> ArchiveReader
  {
    let reader = try image.open(bytes)
    let generation = reader.generation
    for (ordinal, block) in scenario.sections.enumerated() {
      // What a footer does not vouch for is not there, unless none is left and the frames speak for
      // themselves.
      let isCommitted = generation.number == 0 || UInt64(ordinal) < generation.sectionCount
      let isWhole = isCommitted && isWhole(frames[ordinal])
      do {
        let body = try reader.body(of: block.cid)
        guard body == block.bytes || (body == nil && !isWhole) else {
          throw Unexpected("section \(ordinal) is \(body == nil ? "not there" : "another")")
        }
      } catch let error as ArchiveError {
        guard !isWhole else { throw Unexpected("section \(ordinal): \(error)") }
      }
    }
    guard try reader.ordinal(of: CID(codec: .raw, hashing: [1, 2, 3].span)) == nil else {
      throw Unexpected("a section is found that is not there")
    }
    return reader
  }

  /// Appends to a damaged file: it is refused and stays as it is, or succeeds and keeps what is not
  /// damaged.
  ///
  /// - Returns: Whether it succeeded.
  func checkAppending(
    to bytes: [UInt8], _ image: ArchiveImage, using random: inout SeededGenerator,
    isWhole: (Range<Int>) -> Bool
  ) throws -> Bool {
    // Without a footer nothing is committed, whatever the frames say.
    let floor = try image.generation(of: bytes)?.committedLength ?? 0
    let storage = MemoryStorage(bytes, .init(floor: floor))
    let step = BackupStep(
      [.append(.section(random.bytes(100))), .append(.section(random.text(70_000)))],
      nonce: random.next() >> 1)
    let attempt = scenario.run(step, on: storage)
    guard attempt.isCommitted else {
      guard let error = attempt.errors.first as? ArchiveError else {
        throw Unexpected("appending fails with \(attempt.errors)")
      }
      if error.reason == .notAnArchive || error.reason == .begunOtherwise {
        guard storage.bytes == bytes else { throw Unexpected("what is no archive is changed") }
        return false
      }
      // A footer may have been put right before something else was found that cannot be.
      let isRefused = error.reason == .damagedFooter && storage.bytes.count == bytes.count
      guard storage.bytes == bytes || isRefused else {
        throw Unexpected("appending fails with \(error), and the file is another")
      }
      _ = try check(storage.bytes, image) { $0.upperBound <= floor && isWhole($0) }
      return false
    }
    let after = storage.bytes
    guard after.starts(with: bytes.prefix(Int(floor))) else {
      throw Unexpected("appending changed what was committed")
    }
    let reader = try check(after, image) { $0.upperBound <= floor && isWhole($0) }
    for block in attempt.accepted {
      guard try reader.body(of: block.cid) == block.bytes else {
        throw Unexpected("what was appended is not there")
      }
    }
    return true
  }
}

@Suite struct `An archive of several generations that is damaged` {
  @Test
  func `is never verified, and gives back all that is not damaged, whichever byte is changed`()
    throws
  {
    let image = try ArchiveImage()
    var (changes, appended) = (0, 0)
    for var round in Torture.rounds(1, from: 0xda0a_0000) {
      let archive = try LayeredArchive(using: &round.random, image)
      for place in archive.file.indices {
        // All bits of a byte inverted in the first round, any of them later.
        let mask = round.number == 0 ? 0xff : UInt8.random(in: 1...255, using: &round.random)
        var bytes = archive.file
        bytes[place] ^= mask
        changes += 1
        do {
          let reader = try archive.check(bytes, image) { !$0.contains(place) }
          let full = try image.open(bytes).verify(workers: 1)
          guard !full.isIntact else { throw Unexpected("it verifies") }
          let quick = try reader.verify(.quick, workers: 1)
          guard !quick.isIntact else { throw Unexpected("a quick look sees nothing") }
          // A footer is repaired, and nothing else is made worse.
          if place % 4 == 0 {
            let hasAppended = try archive.checkAppending(
              to: bytes, image, using: &round.random
            ) { !$0.contains(place) }
            appended += hasAppended ? 1 : 0
          }
        } catch {
          Issue.record("\(round), byte \(place) of \(bytes.count) ^ \(mask): \(error)")
        }
      }
    }
    Torture.report(counts: "\(changes) bytes changed, \(appended) damaged archives appended to")
    #expect(changes > 2000 && appended > 100)
  }

  @Test
  func `is the last generation that is whole, wherever it is cut off, and can be appended to`()
    throws
  {
    let image = try ArchiveImage()
    var (cuts, appended) = (0, 0)
    for var round in Torture.rounds(1, from: 0xda0b_0000) {
      let archive = try LayeredArchive(using: &round.random, image)
      let scenario = archive.scenario
      for length in archive.file.indices {
        let bytes = Array(archive.file[..<length])
        cuts += 1
        do {
          let isWhole: (Range<Int>) -> Bool = { $0.upperBound <= length }
          do {
            let reader = try archive.check(bytes, image, isWhole: isWhole)
            let last = scenario.commits.last { $0.bytes.count <= length }
            guard reader.generation.number == last?.generation.number ?? 0 else {
              throw Unexpected("it opens as generation \(reader.generation.number)")
            }
            let isWholeFile = last?.bytes.count == length
            guard try reader.verify(workers: 1).findings.isEmpty == isWholeFile
            else { throw Unexpected("\(isWholeFile ? "it is" : "it is not") said to be cut") }
            try image.check(
              bytes, isOneOf: scenario.commits,
              orUncommittedOf: last == nil ? scenario.sections : nil)
          } catch let error as ArchiveError where error.reason == .notAnArchive {
            guard length < archive.frames[0].lowerBound else { throw error }
          }
          if length % 4 == 0 {
            let hasAppended = try archive.checkAppending(
              to: bytes, image, using: &round.random, isWhole: isWhole)
            guard hasAppended || length < archive.frames[0].lowerBound else {
              throw Unexpected("nothing can be appended")
            }
            appended += hasAppended ? 1 : 0
          }
        } catch {
          Issue.record("\(round), cut at \(length) of \(archive.file.count): \(error)")
        }
      }
    }
    Torture.report(counts: "\(cuts) lengths, \(appended) archives that were cut off appended to")
    #expect(cuts > 2000 && appended > 400)
  }

  @Test func `gives back all that lies outside of a hole, wherever that is`() throws {
    let image = try ArchiveImage()
    var holes = 0
    for var round in Torture.rounds(4, from: 0xda0c_0000) {
      let archive = try LayeredArchive(using: &round.random, image)
      for _ in 0..<150 {
        let start = Int.random(in: archive.file.indices, using: &round.random)
        let length = min(
          Int.random(in: 1...1500, using: &round.random), archive.file.count - start)
        let hole = start..<start + length
        let filling =
          round.random.next() % 2 == 0
          ? [UInt8](repeating: 0, count: length) : round.random.bytes(length)
        var bytes = archive.file
        bytes.replaceSubrange(hole, with: filling)
        // A hole may be what was there.
        guard bytes != archive.file else { continue }
        holes += 1
        do {
          let reader: ArchiveReader
          do {
            reader = try archive.check(bytes, image) { !$0.overlaps(hole) }
          } catch let error as ArchiveError where error.reason == .notAnArchive {
            guard hole.lowerBound < archive.frames[0].lowerBound else { throw error }
            continue
          }
          guard try !reader.verify(workers: 1).isIntact else {
            throw Unexpected("it verifies")
          }
          _ = try archive.checkAppending(to: bytes, image, using: &round.random) {
            !$0.overlaps(hole)
          }
        } catch {
          Issue.record("\(round), hole \(hole) of \(bytes.count): \(error)")
        }
      }
    }
    Torture.report(counts: "\(holes) holes")
    #expect(holes > 500)
  }
}
