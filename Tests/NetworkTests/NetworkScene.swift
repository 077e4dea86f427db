import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

/// Accounts on a server of the tests' own, and a folder in which the command backs them up.
struct NetworkScene {
  let server: StandInPDS
  let accounts: [StandInAccount]
  let folder: TemporaryFolder
  let command: Command

  init(_ accounts: [StandInAccount], _ behaviour: Behaviour = Behaviour()) throws {
    self.accounts = accounts
    server = try StandInPDS(accounts: accounts, behaviour: behaviour)
    folder = try TemporaryFolder()
    command = try Command(in: folder)
  }

  /// One account, made up in the way of a server.
  init(
    posts: Int = 20, blobs: Int, blobSize: Int = 5000, large: [Int] = [],
    _ behaviour: Behaviour = Behaviour()
  ) throws {
    try self.init(
      [
        StandInAccount(
          "somebody", posts: posts, blobs: blobs, blobSize: blobSize, large: large,
          style: behaviour.account)
      ], behaviour)
  }

  /// The first account.
  var account: StandInAccount { accounts[0] }

  /// What has the command ask this server for everything.
  var flags: String { "--plc \(server.url) --resolver \(server.url)" }

  /// Where the first account is backed up to.
  static let archive = "archive.car.zst"

  /// The line that backs up the first account.
  func line(_ more: String = "") -> String {
    "carpack backup \(account.did) \(flags) -o \(Self.archive) \(more)"
  }

  /// Backs up the first account.
  func backUp(_ more: String = "") throws -> Command.Result { try command.run(line(more)) }

  // MARK: What was asked

  /// How many requests of XRPC there were.
  var requestCount: Int { server.server.log.count { $0.path.hasPrefix("/xrpc/") } }

  /// How often clients have asked for this.
  func requestCount(of endpoint: String) -> Int {
    server.server.log.count { $0.path.hasSuffix(endpoint) }
  }

  // MARK: What has to be in the archive

  /// Expects the newest snapshot of an archive to be the account as it is now, with every blob, and
  /// the archive to be in order.
  func expectWhole(
    _ account: StandInAccount? = nil, in archive: String = archive,
    without missing: Set<CID> = [], location: SourceLocation = #_sourceLocation
  ) throws {
    let account = account ?? self.account
    let verified = try command.run("carpack verify \(archive)")
    #expect(
      verified.status == (missing.isEmpty ? 0 : 10), "\(verified.text)\(verified.errors)",
      sourceLocation: location)
    let (car, blobs) = try contents(of: archive, account.did)
    let blocks = try Self.blocks(car)
    #expect(blocks.roots == [account.head], sourceLocation: location)
    let lost = try Self.blocks(account.car()).cids.subtracting(blocks.cids)
    #expect(lost.isEmpty, sourceLocation: location)
    let difference = blobs.symmetricDifference(account.referencedBlobs.subtracting(missing))
    #expect(difference.isEmpty, sourceLocation: location)
  }

  /// The newest CAR that an archive holds of an account, and the CIDs of its blobs, which are
  /// hashed.
  func contents(of archive: String = archive, _ did: String) throws -> (
    car: [UInt8], blobs: Set<CID>
  ) {
    let name = "extracted-\(UUID().uuidString)"
    let extracted = try command.run("carpack extract --all --account \(did) -d \(name) \(archive)")
    #expect([0, 10].contains(extracted.status), "\(extracted.errors)")
    defer { try? FileManager.default.removeItem(atPath: folder.file(name)) }
    var car: [UInt8]?
    var blobs: Set<CID> = []
    for file in folder.names(under: name) {
      if file.contains("/blobs/") { blobs.insert(.blob(try folder.read("\(name)/\(file)"))) }
      if file.hasSuffix(".car") { car = try folder.read("\(name)/\(file)") }
    }
    return (try #require(car), blobs)
  }

  /// The roots and the CIDs of a CAR, whose blocks are hashed.
  static func blocks(_ car: [UInt8]) throws -> (roots: [CID], cids: Set<CID>) {
    var rest: [UInt8]? = car
    var reader = CARReader<Never> { () throws(Never) -> [UInt8]? in
      defer { rest = nil }
      return rest
    }
    let header = try reader.readHeader()
    var cids: Set<CID> = []
    while let block = try reader.next() { cids.insert(block.cid) }
    return (header.roots, cids)
  }

  /// The blobs that an archive's ledger has as missing, with the reasons.
  func ledger(of archive: String = archive) throws -> [String: String] {
    struct Entry: Decodable {
      let cid: String?
      let reason: String?
    }
    let result = try command.run("carpack missing --json \(archive)")
    var reasons: [String: String] = [:]
    for line in result.text.split(separator: "\n") {
      let entry = try JSONDecoder().decode(Entry.self, from: Data(line.utf8))
      // A line without a blob says that the server's list is not whole.
      if let cid = entry.cid { reasons[cid] = entry.reason }
    }
    #expect(result.status == (result.text.isEmpty ? 0 : 10))
    return reasons
  }
}
