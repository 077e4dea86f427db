import ATProtocol
import IPLD
import StandIn
import TestSupport
import Testing

struct `Keys that accounts of the tests sign with` {
  @Test func `sign as the fixtures are signed`() throws {
    let account = try StandInAccount(folder: "\(Command.packageRoot)/Fixtures/alice")
    let car = account.car()
    let header = try CARHeader(car.span)
    var cursor = CARCursor(header: header, payload: 0..<car.count)
    let (section, _) = try #require(try cursor.next(in: car.span))
    var map = try #require(try DAGCBORDecoder.decode(car.span.extracting(section.bodyRange)).map)
    let signature = map["sig"]?.bytes
    map["sig"] = nil
    #expect(account.key.sign(try DAGCBOREncoder.encode(.map(map))) == signature)
  }

  @Test(arguments: [SigningKey.Curve.k256, .p256])
  func `make signatures that hold`(_ curve: SigningKey.Curve) throws {
    for number in 0..<20 {
      let key = SigningKey(curve, seed: "key \(number)")
      let message = Array("message \(number)".utf8)
      let published = try VerificationKey(multikey: key.multikey)
      let (low, high) = (key.sign(message), key.sign(message, highS: true))
      let holds = [low, high].map { published.verifies($0, of: message.span) }
      #expect(holds == [true, false])
      #expect(
        try VerificationKey(
          legacyMultibase: key.legacyMultibase, on: curve == .k256 ? .k256 : .p256) == published)
    }
  }
}
