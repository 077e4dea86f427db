import ATProtocol
import IPLD
import Repository
import StandIn
import TestSupport
import Testing

/// Proofs that are judged here, and by a program of another language that shares nothing with this
/// one.
@Suite(.enabled(if: IndependentReader.isPresent, Comment(rawValue: IndependentReader.absence)))
struct `Proofs that two programs judge` {
  /// A proof, what it is about, and what it says if it holds.
  private struct Case {
    let car: [UInt8]
    let path: String
    let finding: String
  }

  /// An account with records, and proofs of some that are there and of as many that are not.
  private func cases(of account: StandInAccount, _ random: inout SeededGenerator) throws -> [Case] {
    let (roots, blocks) = try readCAR(account.car())
    let root = try #require(roots.first)
    var paths: [(path: String, cid: CID)] = []
    let found = try inspect(account.car()) {
      paths.append((String(decoding: $0.key, as: UTF8.self), $0.cid))
    }
    #expect(found.isComplete)
    return try (0..<80).map { number in
      let there = paths[Int.random(in: paths.indices, using: &random)]
      // Beside a record that is there, or in a collection that is not.
      let path =
        number % 2 == 0
        ? there.path : there.path + (number % 4 == 1 ? "x" : "") + ["z", "2"][number / 4 % 2]
      return Case(
        car: try RecordProof.make(of: RecordPath(path), commit: root) { blocks[$0] }, path: path,
        finding: number % 2 == 0 ? "record \(there.cid)" : "absent")
    }
  }

  /// What is said here.
  private func judge(_ car: [UInt8], _ path: String, _ key: VerificationKey) -> String {
    do {
      let path = try RecordPath(path)
      let proof = try RecordProof(judging: car.span, of: path)
      guard proof.commit.isSigned(by: key) else { return "invalid" }
      return switch proof.finding {
      case .record(let cid, _): "record \(cid)"
      case .absent: "absent"
      }
    } catch {
      return "invalid"
    }
  }

  @Test(arguments: [SigningKey.Curve.k256, .p256])
  func `hold in both, and in neither once one bit is another`(_ curve: SigningKey.Curve) throws {
    var random = SeededGenerator(printing: 0x9747_0002)
    var style = AccountStyle()
    style.curve = curve
    let account = try StandInAccount("alice", posts: 400, style: style)
    let key = try VerificationKey(didKey: "did:key:\(account.key.multikey)")
    let other = try VerificationKey(didKey: "did:key:\(SigningKey(curve, seed: "other").multikey)")
    let folder = try TemporaryFolder()
    var list = ""
    var expected: [String] = []
    func add(_ car: [UInt8], _ path: String, _ key: VerificationKey, _ finding: String) throws {
      let file = "\(expected.count).car"
      try folder.write(file, car)
      list += "\(folder.file(file))\t\(path)\t\(key.didKey)\n"
      expected.append(finding)
      #expect(judge(car, path, key) == finding, "\(path), \(random)")
    }
    for (number, item) in try cases(of: account, &random).enumerated() {
      try add(item.car, item.path, key, item.finding)
      var spoilt = item.car
      spoilt[Int.random(in: spoilt.indices, using: &random)] ^=
        1 << UInt8.random(in: 0..<8, using: &random)
      try add(spoilt, item.path, key, "invalid")
      if number % 20 == 0 { try add(item.car, item.path, other, "invalid") }
    }
    try folder.write("list", Array(list.utf8))
    let verdicts = try IndependentReader.judgeProofs(folder.file("list"))
    #expect(verdicts.count == expected.count)
    for (number, (verdict, finding)) in zip(verdicts, expected).enumerated() {
      #expect(
        finding == "invalid" ? verdict.hasPrefix("invalid ") : verdict == finding,
        "\(number): \(verdict)")
    }
  }
}
