import ATProtocol
import Testing

/// A key of each curve, in every form it is written in, and what its private half signed; made once
/// with another implementation.
struct SampleKey: Sendable, CustomTestStringConvertible {
  let curve: VerificationKey.Curve
  let didKey: String
  /// The forms in documents of 2022 and 2023.
  let legacyCompressed: String
  let legacyUncompressed: String
  /// Over `a message`, with the lower s and with the higher.
  let lowSignature: String
  let highSignature: String
  /// Over the commit without `sig` that ``exampleCommit(data:)`` is.
  let commitSignature: String
  /// The same with three more fields.
  let extendedCommitSignature: String

  var testDescription: String { curve.rawValue }

  static let message = Array("a message".utf8)

  static let all = [k256, p256]

  static let k256 = SampleKey(
    curve: .k256, didKey: "did:key:zQ3she4kaQ448PnMgnWLrDxKj4fnLBeQbp8NZxEzET5EF28vf",
    legacyCompressed: "zt7bZYuaf598oYQfRqsSgF5QtXtDdXaL32KES9jZ7of4w",
    legacyUncompressed:
      "zSRPT9o6NX6uoyBXcifhX5un3QDpRiqYBNNy3Jx1dMbiQb5oWohcxxUzAKHAqA6M4biu4rsNzGzJfWPGrcL7RQnDR",
    lowSignature:
      "e942263e9faf9d9b477a9d3952a2a5bf105c7765713942fbb8147443ba0b4a8a49b72cb11d2cc1689f725081dc49e86d58702b8c697db66d3cfbb2c757597c03",
    highSignature:
      "e942263e9faf9d9b477a9d3952a2a5bf105c7765713942fbb8147443ba0b4a8ab648d34ee2d33e97608daf7e23b61791623eb15a45cae9ce82d6abc578dcc53e",
    commitSignature:
      "18078824575464131b881852fc8d8a77d90ff6f7cdd0d32c32836b0109996a014be3524143552090d4ffb18706e8dd6c57557545750c2f73ce44cd5845fde99d",
    extendedCommitSignature:
      "fab2c25aff95246bc15516290495654901b649380458e29f7a0ba0e6fa5d23883e925500d27fb5b4ab50479a30e078a5be50d25046fd490d35e8dd254a7871f8"
  )

  static let p256 = SampleKey(
    curve: .p256, didKey: "did:key:zDnaet2kx7uQa9QzGWFtZWPdXWjmH3rKkFAbPw7RYhJzreCqi",
    legacyCompressed: "z254ReUsauQwSot6ZudsX9rRM313CcUo5FzG878VQwGRnc",
    legacyUncompressed:
      "zQZ7UWbScAm17SasGmFBb8PWH6VECFKVgPv3uW5z2XrpGAb1cZKQe7MQ1ui1gWeXE3GQvw9FsUEYtimW5MawaAydG",
    lowSignature:
      "97922f63383dee034c0f6d7f1208b8f72d5217ad174845e23c2ef3e0294c6d976b1b9e076646f2fa47a46af249177b9d2b3eb2e2557cd5f87bda6d4e4020d994",
    highSignature:
      "97922f63383dee034c0f6d7f1208b8f72d5217ad174845e23c2ef3e0294c6d9794e461f799b90d06b85b950db6e8846291a847cb519ac88c77df5d74bc424bbd",
    commitSignature:
      "9cbe6940109b9819367fc2ad427048cf0570a451c13315925667ab4e2e3b865e49db203aac678109756a55e82e23ed8c063786c29e17bfcfd8f665066c8c8d19",
    extendedCommitSignature:
      "b17534727fd98c2366f35c3db128b2b88e3b70a5db6945708633dac785bf39341fb4e165e6bea4dd9a2e055763c2af8f134efe8a8addd636d05fd1b1fc832b1c"
  )
}

extension VerificationKey {
  /// The same of an array; a span cannot be passed through `#expect`.
  func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    verifies(signature, of: message.span)
  }
}
