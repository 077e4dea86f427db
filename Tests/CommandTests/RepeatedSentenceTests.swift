import ATProtocol
import Foundation
import IPLD
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `What is wrong many times` {
  @Test func `is said three times, and then how often; JSON has all of it`() throws {
    let folder = try TemporaryFolder()
    try folder.write("many.car", try TestRepository(posts: 1500).car())
    let command = try Command(in: folder)
    _ = try command.run("carpack pack -q many.car -o many.car.zst")
    var bytes = try folder.read("many.car.zst")
    // The tree and the records lie in one frame, of which little is left.
    for place in 2000..<2100 { bytes[place] ^= 0x55 }
    try folder.write("many.car.zst", bytes)
    let told = try command.run("carpack verify many.car.zst")
    #expect(told.status == 11)
    let lines = told.errors.split(separator: "\n")
    let nodes = lines.filter { $0.contains("is lost, and all records below it") }
    #expect(nodes.count == 3)
    #expect(lines.contains { $0.contains("damaged: and ") && $0.hasSuffix("--json many.car.zst") })
    let json = try command.run("carpack verify --json --pretty many.car.zst").text
    let all = json.split(separator: "\n").filter { $0.contains("is lost, and all records below") }
    #expect(all.count > 6)
  }

  @Test func `is named ten times by repair -o, and then counted; JSON names all of it`() throws {
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    // The tree stands before the records that it names, and is whole where a pack of them is lost.
    var repository = try TestRepository(posts: 0)
    var random = SeededGenerator(seed: 0x1057)
    for number in 0..<1800 {
      let noise = random.bytes(1500)
      try repository.add("a.b.c/\(10_000 + number)", ["noise": .bytes(noise)])
    }
    let blocks = try repository.blocks()
    let isNode = { (block: Block) in MSTNode.isLikely(block.bytes.span) }
    let sorted =
      [blocks[0]] + blocks.dropFirst().filter(isNode)
      + blocks.dropFirst().filter { !isNode($0) }
    var car: [UInt8] = []
    CARWriter.appendHeader(roots: [blocks[0].cid], to: &car)
    for block in sorted { CARWriter.appendSection(block.cid, block.bytes.span, to: &car) }
    try folder.write("many.car", car)
    #expect(try command.run("carpack pack -q many.car -o many.car.zst").status == 0)
    var bytes = try folder.read("many.car.zst")
    let middle = bytes.count * 3 / 5
    for place in middle..<middle + 100_000 { bytes[place] ^= 0x55 }
    try folder.write("many.car.zst", bytes)
    let told = try command.run("carpack repair many.car.zst -o new.car.zst")
    #expect(told.status == 10, "\(told.errors)")
    let lines = told.errors.split(separator: "\n")
    #expect(lines.filter { $0.contains("lost: a.b.c/") }.count == 10, "\(told.errors)")
    let more = "carpack repair --json --force many.car.zst -o new.car.zst"
    #expect(lines.contains { $0.contains("lost: and ") && $0.hasSuffix(more) }, "\(told.errors)")
    let all = try command.run("\(more) --pretty").text.split(separator: "\n")
    let named = all.filter { $0.contains("\"a.b.c/") }.count
    let count = all.first { $0.contains("\"lostRecords\"") }.map { $0.filter(\.isNumber) }
    #expect(named > 40 && count == "\(named)", "\(named) of \(count ?? "none")")
  }
}
