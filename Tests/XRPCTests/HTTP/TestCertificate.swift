import Foundation
import TestSupport

/// A certificate for `pds.test` that only the test trusts, and its key.
struct TestCertificate {
  let path: String
  let key: String

  /// Where the program is that makes it; nil if it is not installed.
  static let program = ["/usr/bin/openssl", "/opt/homebrew/bin/openssl", "/usr/local/bin/openssl"]
    .first { FileManager.default.isExecutableFile(atPath: $0) }

  struct Failed: Error {}

  /// Makes one.
  init(in folder: TemporaryFolder) throws {
    guard let program = Self.program else { throw Failed() }
    path = folder.file("certificate.pem")
    key = folder.file("key.pem")
    let making = Process()
    making.executableURL = URL(filePath: program)
    making.arguments = [
      "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", path, "-days", "2",
      "-subj", "/CN=pds.test", "-addext", "subjectAltName=DNS:pds.test",
    ]
    making.standardError = FileHandle.nullDevice
    try making.run()
    making.waitUntilExit()
    guard making.terminationStatus == 0 else { throw Failed() }
  }
}
