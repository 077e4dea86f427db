import ATProtocol
import IPLD
import TestSupport

/// `com.atproto.sync`, as far as it is about repositories.
extension StandInPDS {
  func getLatestCommit(_ call: Call) throws {
    let account = try account(call)
    try call.send(["cid": .string("\(account.head)"), "rev": .string(account.rev.text)])
  }

  func getRepoStatus(_ call: Call) throws {
    guard let did = call.request.parameter("did"), let account = find(did) else {
      throw Call.Refused(
        call.behaviour.unknownAccount, 400, "RepoNotFound", "Could not find repo for DID")
    }
    var answer: IPLDMap = [
      "did": .string(did), "active": .boolean(account.status == .active),
    ]
    if account.status != .active {
      answer["status"] = .string(account.status.rawValue)
    } else if call.behaviour.statusHasRev {
      answer["rev"] = .string(account.rev.text)
    }
    try call.send(answer)
  }

  func getRepo(_ call: Call) throws {
    if call.request.method == "HEAD", call.behaviour.refusesHEAD {
      return try call.refuse(405, "MethodNotAllowed", "Method Not Allowed")
    }
    var source = try account(call)
    var since: TID?
    if let text = call.request.parameter("since"), !text.isEmpty {
      if call.behaviour.since == .refused {
        return try call.refuse(400, "InvalidRequest", "since is not supported")
      }
      guard let rev = try? TID(text) else {
        return try call.refuse(400, "InvalidRequest", "Error: since must be a valid TID")
      }
      since = call.behaviour.since == .ignored ? nil : rev
    }
    if call.fault == .otherAccount, let other = accounts.first(where: { $0.did != source.did }) {
      source = other
    }
    let state = source.snapshot()
    var image = CARImage(state, since: since, call.behaviour)
    try spoil(&image, source, state, call.fault)
    if call.behaviour.announcesRev, let rev = state.rev {
      call.response.fields.append(("Atproto-Repo-Rev", rev.text))
    }
    try send(image, call)
  }

  /// Does to a CAR what a fault asks for.
  private func spoil(
    _ image: inout CARImage, _ account: StandInAccount, _ state: AccountState, _ fault: Fault?
  ) throws {
    switch fault {
    case .lacksBlocks?:
      image.blocks = image.blocks.enumerated().filter { index, block in
        block.cid == state.commit || index % 3 != 2
      }.map(\.element)
    case .badSignature?:
      guard let data = state.data, let rev = state.rev else { return }
      let commit = try account.signedCommit(data: data, rev: rev, previous: nil, spoilt: true)
      image.roots = [commit.cid]
      image.blocks.removeAll { $0.cid == state.commit }
      image.blocks.insert((commit.cid, commit.bytes), at: 0)
    case .previousRevision?:
      guard let previous = state.previous else { return }
      image = CARImage(previous, since: nil, Behaviour())
    case .rootless?: image.roots = []
    default: break
    }
  }

  func getRecord(_ call: Call) throws {
    let state = try account(call).snapshot()
    guard let collection = call.request.parameter("collection"),
      let rkey = call.request.parameter("rkey"), let commit = state.commit, let data = state.data
    else {
      return try call.refuse(400, "InvalidRequest", "Error: Params must have collection and rkey")
    }
    var key = Array("\(collection)/\(rkey)".utf8)
    if state.records[key] == nil, let refusal = call.behaviour.absentRecord {
      throw Call.Refused(refusal, 400, "RecordNotFound", "Could not find record")
    }
    if call.behaviour.provesWrongRecord, let other = state.records.keys.sorted(by: <).first {
      key = other
    }
    var cids = [commit]
    let record = try MSTDescent.find(key, below: data) { cid in
      cids.append(cid)
      return state.blocks[cid]?.bytes
    }
    if let record { cids.append(record) }
    try send(CARImage(roots: [commit], cids, of: state), call)
  }

  func getBlocks(_ call: Call) throws {
    let state = try account(call).snapshot()
    var cids: [CID] = []
    for text in call.request.parameters("cids") {
      guard let cid = try? CID(text) else {
        return try call.refuse(400, "InvalidRequest", "Error: cids must be CIDs")
      }
      guard state.blocks[cid]?.isCurrent == true else {
        return try call.refuse(400, "BlockNotFound", "Could not find blocks: \(cid)")
      }
      cids.append(cid)
    }
    try send(CARImage(roots: [], cids, of: state), call)
  }

  func listRepos(_ call: Call) throws {
    let limit = min(
      call.request.parameter("limit").flatMap { Int($0) } ?? 500, call.behaviour.maximumPage)
    guard var after = try cursor(of: call, listing: "repos") else { return }
    if call.behaviour.paging == .loop { after = "" }
    let rest = accounts.filter { $0.did > after && $0.status != .deleted }
    let page = rest.prefix(max(1, limit))
    let repos = page.map { account -> IPLDValue in
      var entry: IPLDMap = [
        "did": .string(account.did), "head": .string("\(account.head)"),
        "rev": .string(account.rev.text), "active": .boolean(account.status == .active),
      ]
      if account.status != .active { entry["status"] = .string(account.status.rawValue) }
      return .map(entry)
    }
    var answer: IPLDMap = ["repos": .array(repos)]
    if page.count < rest.count || call.behaviour.paging == .cursorOnEveryPage,
      let last = page.last
    {
      answer["cursor"] = .string(last.did)
    }
    if call.behaviour.paging == .loop { answer["cursor"] = .string("again") }
    try call.send(answer)
  }

  private func send(_ image: CARImage, _ call: Call) throws {
    let response = call.response
    response.fields.append(("Content-Type", call.behaviour.carType))
    let accepted = call.request["accept-encoding"] ?? ""
    if call.behaviour.compressesCARs, accepted.contains("gzip") {
      // All at once: CARs of the tests are not long.
      var bytes: [UInt8] = []
      try image.forEachPiece { piece in for index in piece.indices { bytes.append(piece[index]) } }
      response.fields += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
      return try response.send(Gzip.store(bytes), framing: call.behaviour.carFraming)
    }
    try response.begin(length: image.length, framing: call.behaviour.carFraming)
    try image.forEachPiece { try response.write($0) }
    try response.end()
  }
}

private func < (left: [UInt8], right: [UInt8]) -> Bool { left.lexicographicallyPrecedes(right) }
