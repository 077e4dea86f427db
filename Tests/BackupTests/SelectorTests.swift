import ATProtocol
import IPLD
import Snapshots
import TestSupport
import Testing

@Suite struct `Choosing a snapshot` {
  private static let alice = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
  private static let bob = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
  /// Both accounts have the first revision; the others differ by their last characters.
  private static let revisions = [
    "3lscuqc52or2x", "3lscuqc52or3y", "3lscuqc52or4z", "3mscuqc52or2x",
  ]

  /// Of Alice the numbers 1, 3, 5 and 6, of Bob 2 and 4.
  private static let archive: SeriesArchive = {
    do {
      var archive = try SeriesArchive()
      for (did, handle, revision, day, posts) in [
        (alice, "alice.test", 0, "01-10", 1), (bob, "bob.test", 0, "01-11", 1),
        (alice, "alice.example.com", 1, "01-12", 2), (bob, "bob.test", 2, "01-13", 2),
        (alice, nil, 3, "01-14", 3), (alice, nil, 3, "01-15", 3),
      ] as [(String, String?, Int, String, Int)] {
        var repository = try TestRepository(posts: posts)
        (repository.did, repository.rev) = (did, revisions[revision])
        try archive.add(repository.car(), handle: handle, at: "2026-\(day)T10:00:00Z")
      }
      return archive
    } catch {
      fatalError("\(error)")
    }
  }()

  private static let history: SnapshotHistory = {
    do {
      return try SnapshotHistory(of: archive.reader())
    } catch {
      fatalError("\(error)")
    }
  }()

  private func numbers(_ text: String, of account: String? = nil) throws(SelectionError) -> [Int] {
    let account = try account.map { text throws(SelectionError) in try Self.history.account(text) }
    return try Self.history.select(SnapshotSelector(text), of: account).map(\.number)
  }

  @Test func `goes by number, from either end`() throws {
    for number in 1...6 { #expect(try numbers("\(number)") == [number]) }
    #expect(try numbers("-1") == [6])
    #expect(try numbers("-6") == [1])
    // From the end, those of the account count.
    #expect(try numbers("-2", of: Self.bob) == [2])
    #expect(try numbers("-4", of: Self.alice) == [1])
    #expect(try numbers("4", of: Self.bob) == [4])
    #expect(try numbers("03") == [3])
  }

  @Test(arguments: ["7", "-7", "99999999999999999999999", "-99999999999999999999999"])
  func `finds no number that there is not`(text: String) throws {
    #expect {
      try numbers(text)
    } throws: { error in
      "\(error)".contains("the archive has 6, made 2026-01-10T10:00:00Z to 2026-01-15T10:00:00Z")
    }
  }

  @Test func `finds no number of another account`() throws {
    #expect {
      try numbers("3", of: Self.bob)
    } throws: { error in
      "\(error)"
        == "there is no snapshot number 3 of bob.test: number 3 belongs to alice.example.com"
    }
  }

  @Test func `goes by date, for each account`() throws {
    #expect(try numbers("2026-01-10") == [1])
    #expect(try numbers("2026-01-12") == [3, 2])
    #expect(try numbers("2026-01-12T09:59") == [2, 1])
    #expect(try numbers("2026-01-12T10:00") == [3, 2])
    #expect(try numbers("2026-01-12T10:00:00+00:01") == [2, 1])
    #expect(try numbers("2030-01-01", of: Self.bob) == [4])
    #expect(try numbers("2026-01", of: Self.bob) == [4])
    #expect(throws: SelectionError.self) { try numbers("2025-12") }
    #expect(throws: SelectionError.self) { try numbers("2026-01-09") }
    #expect(throws: SelectionError.self) { try numbers("2026-01-10", of: Self.bob) }
  }

  @Test func `goes by date where the clock went back`() throws {
    var archive = try SeriesArchive()
    for (posts, time) in [(1, "2026-03-02"), (2, "2026-03-01"), (3, "nonsense"), (4, "2026-03-01")]
    {
      try archive.add(
        TestRepository(posts: posts).car(), at: time.hasPrefix("2") ? "\(time)T00:00:00Z" : time)
    }
    let history = try SnapshotHistory(of: archive.reader())
    for (text, number) in [("2026-03-01", 4), ("2026-03-02", 1)] {
      #expect(try history.select(SnapshotSelector(text)).map(\.number) == [number])
    }
  }

  @Test func `goes by revision, or the beginning of one`() throws {
    #expect(try numbers(Self.revisions[1]) == [3])
    #expect(try numbers("3lscuqc52or3") == [3])
    // Both accounts have it.
    #expect(try numbers(Self.revisions[0]) == [2, 1])
    #expect(try numbers(Self.revisions[0], of: Self.alice) == [1])
    // The same twice: the newer of them.
    #expect(try numbers("3msc") == [6])
    #expect(throws: SelectionError.self) { try numbers("3lsd") }
    #expect(throws: SelectionError.self) { try numbers(Self.revisions[1], of: Self.bob) }
    #expect {
      try numbers("3lsc")
    } throws: { error in
      error as? SelectionError
        == .ambiguousSnapshot("revision 3lsc", Array(Self.revisions.prefix(3)))
    }
  }

  @Test func `goes by the CID of a manifest or a commit, or the beginning of it`() throws {
    for (index, made) in Self.archive.snapshots.enumerated() {
      #expect(try numbers("\(made.cid)") == [index + 1])
      for length in 11...20 {
        #expect(try numbers(String("\(made.cid)".prefix(length))) == [index + 1])
      }
      // The last two are of one commit.
      #expect(try numbers("\(made.snapshot.commit)") == [index == 4 ? 6 : index + 1])
      #expect(
        try numbers(String("\(made.snapshot.commit)".prefix(20))) == [index == 4 ? 6 : index + 1])
    }
    #expect(throws: SelectionError.self) { try numbers("\(CID.blob([1]))") }
    #expect(throws: SelectionError.self) { try numbers("bafyreiaaaaaaa") }
    let entry = try #require(Self.history.entries.first)
    #expect(throws: SelectionError.self) { try numbers("\(entry.cid)", of: Self.bob) }
  }

  @Test func `refuses the beginning of several CIDs`() throws {
    let history = Self.history
    let prefix = "bafyrei"
    #expect(throws: SelectionError.self) {
      try history.select(.cid(prefix))
    }
  }

  @Test func `goes by the newest`() throws {
    #expect(try numbers("latest") == [6, 4])
    #expect(try numbers("latest", of: "bob.test") == [4])
    #expect(Self.history.newestOfAccounts.map(\.number) == [6, 4])
  }

  @Test func `wants one where one is needed`() throws {
    let history = Self.history
    #expect(try history.selectOne(.number(2)).number == 2)
    #expect(throws: SelectionError.severalAccounts(["alice.example.com", "bob.test"])) {
      try history.selectOne()
    }
    #expect(try history.selectOne(of: history.account(Self.bob)).number == 4)
  }

  @Test func `knows accounts by DID, and by every handle they had`() throws {
    let history = Self.history
    for text in [
      Self.alice, "alice.test", "alice.example.com", "ALICE.test", "@alice.test",
    ] { #expect(try history.account(text).text == Self.alice) }
    for text in ["carol.test", "did:plc:bbbbbbbbbbbbbbbbbbbbbbbb", "", "alice"] {
      #expect(throws: SelectionError.noSuchAccount(text, ["alice.example.com", "bob.test"])) {
        try history.account(text)
      }
    }
    #expect(history.name(of: try DID(Self.alice)) == "alice.example.com")
  }

  @Test func `refuses a handle that changed hands`() throws {
    var archive = try SeriesArchive()
    for did in [Self.alice, Self.bob] {
      var repository = try TestRepository(posts: 1)
      repository.did = did
      try archive.add(repository.car(), handle: "shared.test")
    }
    let history = try SnapshotHistory(of: archive.reader())
    #expect(throws: SelectionError.ambiguousAccount("shared.test", [Self.bob, Self.alice])) {
      try history.account("shared.test")
    }
  }

  @Test(
    arguments: [
      "", "-", "--1", "+1", "1.0", "3ls", "newest", "LATEST", "bafyreiaaaaaa1",
      "2026-13-01", "2026-1-1", "3lscuqc52or2x4", "zzzz", "1lsc", "at://did:plc:x", "３", " 1",
      "bafyreiAAAAAAAA", "latest ",
    ]) func `takes no other words`(text: String)
  {
    #expect(throws: SelectionError.malformedSelector(text)) { try SnapshotSelector(text) }
  }

  @Test(arguments: ["0", "-0", "00"]) func `knows that no snapshot has the number 0`(text: String) {
    let error = #expect(throws: SelectionError.self) { try SnapshotSelector(text) }
    #expect(
      error?.description
        == "there is no snapshot \(text): numbers begin at 1, or at -1 from the end")
  }

  @Test func `tells the words apart`() throws {
    for (text, selector) in [
      ("latest", .latest), ("12", .number(12)), ("-1", .number(-1)), ("2345", .number(2345)),
      ("3lsc", .revision("3lsc")), ("2222222222222", .revision("2222222222222")),
      ("bafyreicccccc2", .cid("bafyreicccccc2")), ("bafyreic", .cid("bafyreic")),
      ("bafyrei", .revision("bafyrei")),
    ] as [(String, SnapshotSelector)] { #expect(try SnapshotSelector(text) == selector) }
    let cid = CID.blob([1])
    #expect(try SnapshotSelector("\(cid)") == .cid("\(cid)"))
  }
}
