import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@Suite(.enabled(if: IndependentReader.isPresent, Comment(rawValue: IndependentReader.absence)))
struct `The walkers that were written from the format alone` {
  @Test func `find the same intact in damaged files`() throws {
    let folder = try TemporaryFolder()
    var (lost, files) = (0, 0)
    for var round in Torture.rounds(12, from: 0x3a1c_0000) {
      let archive = try SequenceArchive(round.random)
      var bytes = archive.file
      var words: [String] = []
      for _ in 0..<Int(round.random.next() % 3) {
        words.append(SequenceDamage.befall(&bytes, &round.random).words)
      }
      let walk = ForwardWalk(bytes)
      let path = try folder.write("damaged.car.zst", bytes)
      let output = try IndependentReader.run(["walk", path]).output
      let other = Set(
        String(decoding: output, as: UTF8.self).split(separator: "\n").compactMap {
          // Other lines are what it says of the file.
          try? CID($0)
        })
      // The other decoder sees nothing of what zstd returns of a block before it fails.
      #expect(other.isSuperset(of: walk.inWholeFrames), "\(round): \(words)")
      #expect(other.isSubset(of: walk.bodies.keys), "\(round): \(words)")
      files += 1
      lost += ForwardWalk(archive.file).bodies.count - walk.bodies.count
    }
    Torture.report(counts: "\(files) files, \(lost) sections lost")
    #expect(lost > 0)
  }
}
