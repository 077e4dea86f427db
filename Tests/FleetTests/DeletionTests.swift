import ATProtocol
import HTTP
import StandIn
import Testing

@testable import Fleet

@Suite struct `The rule for archives of deleted accounts` {
  private struct Case: CustomTestStringConvertible {
    let testDescription: String
    var testimony: Deletion.Testimony? = Deletion.Testimony.none
    var losses = HostLosses(host: "https://pds.example.com", accounts: 100)
    var evidence = DeletionEvidence.server
    let decision: DeletionRule.Decision
    var isNew = false

    init(
      _ name: String, _ testimony: Deletion.Testimony?, _ decision: DeletionRule.Decision,
      accounts: Int = 100, others: Int = 0, gone: Int = 1, isAlarmed: Bool = false,
      isApproved: Bool = false, isNew: Bool = false
    ) {
      self.isNew = isNew
      (testDescription, self.testimony, self.decision) = (name, testimony, decision)
      losses = HostLosses(
        host: "https://pds.example.com", accounts: accounts, goneInADay: gone, onItsWord: others,
        isAlarmed: isAlarmed, isApproved: isApproved)
    }

    static func word(_ count: Int, of accounts: Int) -> DeletionRule.Decision {
      .alarm("\(count) of \(accounts) accounts are deleted by its word alone within 30 days")
    }

    static let all = [
      Case("a relay agrees", .agreed("r"), .move(witness: "r")),
      Case("a relay agrees about the only account", .agreed("r"), .move(witness: "r"), accounts: 1),
      Case(
        "a relay has the account", .denied("r"), .alarm("r has an account that it calls deleted")),
      Case("a relay still has the account", .denied("r"), .keep("r has the account"), isNew: true),
      Case("a relay does not answer", .unanswered("no answer"), .keep("no answer")),
      Case("nobody else, the first of 100", Deletion.Testimony.none, .move(witness: nil)),
      Case("the fifth of 100", Deletion.Testimony.none, .move(witness: nil), others: 4),
      Case("the sixth of 100", Deletion.Testimony.none, word(6, of: 100), others: 5),
      Case("the first of 20", Deletion.Testimony.none, .move(witness: nil), accounts: 20),
      Case("the second of 20", Deletion.Testimony.none, word(2, of: 20), accounts: 20, others: 1),
      Case("the first of 19", Deletion.Testimony.none, word(1, of: 19), accounts: 19),
      Case("the only one", Deletion.Testimony.none, word(1, of: 1), accounts: 1),
      Case("one of none that had an archive", Deletion.Testimony.none, word(1, of: 0), accounts: 0),
      Case(
        "the only one, seen", Deletion.Testimony.none, .move(witness: "operator"), accounts: 1,
        isApproved: true),
      Case("denied, and seen", .denied("r"), .move(witness: "operator"), isApproved: true),
      Case("an alarm is raised", .agreed("r"), .keep(nil), isAlarmed: true),
      Case(
        "an alarm is raised, and was seen before", .agreed("r"), .keep(nil), isAlarmed: true,
        isApproved: true),
      Case("20 within a day", .agreed("r"), .move(witness: "r"), gone: 20),
      Case("21 within a day", .agreed("r"), .alarm("21 accounts are gone within a day"), gone: 21),
      Case("21 that are only missing", nil, .alarm("21 accounts are gone within a day"), gone: 21),
      Case("1 % of many", .agreed("r"), .move(witness: "r"), accounts: 600, gone: 6),
      Case(
        "more than 1 % of many", .agreed("r"), .alarm("7 accounts are gone within a day"),
        accounts: 600, gone: 7),
      Case("it is missing, and nothing proves more", nil, .keep(nil), accounts: 1),
    ]
  }

  @Test(arguments: Case.all) private func `decides by who agrees, and by the share`(_ row: Case) {
    let deletion = row.testimony.map { Deletion(evidence: row.evidence, testimony: $0) }
    #expect(DeletionRule.decide(deletion, row.losses, isNew: row.isNew) == row.decision)
  }
}

@Suite struct `A witness of a deletion` {
  /// What a relay or mirror says: the status that it has of the account, or that it does not know
  /// it, or nothing at all.
  enum Says: Sendable { case status(StandInAccount.Status), unknown, nothing }

  @Test(
    arguments: [
      ([], "none", 0), ([.unknown], "none", 0), ([.status(.deleted)], "agreed", 0),
      ([.status(.active)], "denied", 0), ([.status(.deleted), .status(.active)], "denied", 1),
      ([.unknown, .status(.deleted)], "agreed", 1), ([.nothing, .status(.deleted)], "agreed", 1),
      ([.status(.takendown)], "unanswered", 0), ([.nothing], "unanswered", 0),
    ] as [([Says], String, Int)])
  func `is asked besides the account's own server`(says: [Says], word: String, index: Int)
    async throws
  {
    func account(_ status: StandInAccount.Status) throws -> StandInAccount {
      let account = try StandInAccount("gone")
      account.status = status
      return account
    }
    let own = try StandInPDS(accounts: [account(.deleted)])
    let others = try says.map { says in
      switch says {
      case .status(let status): return try StandInPDS(accounts: [account(status)])
      case .unknown: return try StandInPDS(accounts: [])
      case .nothing:
        let server = try StandInPDS(accounts: [])
        server.play(FaultRule(.status(500)))
        return server
      }
    }
    defer { for server in others + [own] { server.stop() } }
    let did = try DID(account(.active).did)
    own.setAuditLog(try account(.active).auditLog(on: own.url), for: did.text)
    var options = NetworkOptions(userAgent: "tests")
    (options.plcDirectory, options.attempts) = (own.url, 1)
    options.namedServers = others.map(\.url)
    // Its own server is no second opinion.
    let witnesses = [own.url] + others.map(\.url)
    let found = try await Deletion.find(of: did, Network(options), asking: witnesses)
    #expect(found?.evidence == .server)
    let said =
      switch try #require(found).testimony {
      case .none: ("none", "")
      case .agreed(let witness): ("agreed", witness)
      case .denied(let witness): ("denied", witness)
      case .unanswered(let why): ("unanswered", why)
      }
    #expect(said.0 == word && (word == "none" || said.1.hasPrefix(others[index].url)), "\(said)")
  }
}
