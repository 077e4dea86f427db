import Archive
import Copying
import Packing
import Snapshots
import TestSupport
import Testing

@Suite struct `What an archive has that another lacks` {
  @Test func `is a blob only if it is no document of a snapshot, be that forgotten`() throws {
    let car = try TestRepository(posts: 20).car()
    let bare = try Packed(car: car)
    var facts = AccountFacts()
    facts.plcLog = Array("[1]".utf8)
    let documented = try Packed(car: car, facts: facts)
    let more = try documented.reader.surplus(over: bare.reader)
    // The log, and the manifest that names it.
    #expect(more == (1, 0, 2) || more == (0, 0, 2), "\(more)")
    let blob = try Packed(car: car, blobs: ["x": [1, 2, 3]], extras: true)
    #expect(try blob.reader.surplus(over: bare.reader).blobs == 1)
    #expect(try blob.reader.surplus(over: documented.reader).blobs == 1)

    var series = try Series()
    for day in 1...2 {
      var repository = try TestRepository(posts: 20)
      repository.rev = "3lscuqc52or\(day + 1)x"
      try series.pack(repository.car()) { $0.facts.plcLog = Array("[\(day + 1)]".utf8) }
    }
    _ = try RetentionPolicy().prune(FileStorage.open(series.path), name: "a")
    #expect(try SnapshotHistory(of: series.reader).entries.count == 1)
    #expect(try series.reader.surplus(over: bare.reader).blobs == 0)
  }
}
