import Foundation
import TestSupport
import Testing

@Suite struct `What is wrong many times` {
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
}
