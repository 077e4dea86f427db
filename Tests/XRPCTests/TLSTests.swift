import Foundation
import TestSupport
import Testing
import XRPC

/// OpenSSL's own server on this machine, with a certificate for `pds.test` that nobody but the test trusts.
final class TLSServer: @unchecked Sendable {
  let port: Int
  let certificate: String
  private let process: Process
  private let folder: TemporaryFolder

  /// Where the program is; nil if it is not installed.
  static let program = ["/usr/bin/openssl", "/opt/homebrew/bin/openssl", "/usr/local/bin/openssl"]
    .first { FileManager.default.isExecutableFile(atPath: $0) }

  struct Failed: Error {}

  init() throws {
    guard let program = Self.program else { throw Failed() }
    folder = try TemporaryFolder()
    certificate = folder.file("certificate.pem")
    let key = folder.file("key.pem")
    let making = Process()
    making.executableURL = URL(filePath: program)
    making.arguments = [
      "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
      "-days", "2", "-subj", "/CN=pds.test", "-addext", "subjectAltName=DNS:pds.test",
    ]
    making.standardError = FileHandle.nullDevice
    try making.run()
    making.waitUntilExit()
    guard making.terminationStatus == 0 else { throw Failed() }

    process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = [
      "s_server", "-accept", "127.0.0.1:0", "-cert", certificate, "-key", key, "-www",
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    // It says "ACCEPT 127.0.0.1:12345" when it is there.
    var said = ""
    while !said.contains("\n") || !said.contains("ACCEPT ") {
      let data = output.fileHandleForReading.availableData
      guard !data.isEmpty else { throw Failed() }
      said += String(decoding: data, as: UTF8.self)
    }
    let line = said.split(separator: "\n").first { $0.hasPrefix("ACCEPT ") } ?? ""
    guard let port = Int(line.split(separator: ":").last ?? "") else { throw Failed() }
    self.port = port
  }

  // It may have been started with signals blocked, but for the one that cannot be.
  deinit {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}

@Suite(
  .enabled(
    if: TLSServer.program != nil, "the openssl program is not installed, which is the server here"))
struct `a server that has to prove who it is` {
  private func get(_ server: TLSServer, host: String, trusting caFile: String?) async throws -> Int
  {
    var options = NetworkOptions(userAgent: "test")
    options.caFile = caFile
    options.hostPins = ["\(host):\(server.port):127.0.0.1"]
    let (response, _) = try await CurlTransport(options).send(
      HTTPRequest(.get, "https://\(host):\(server.port)/"), to: RecordingSink())
    return response.status
  }

  @Test func `is believed by a certificate from the file that is set`() async throws {
    let server = try TLSServer()
    #expect(try await get(server, host: "pds.test", trusting: server.certificate) == 200)
  }

  @Test func `is not believed otherwise`() async throws {
    let server = try TLSServer()
    let none = server.certificate + ".none"
    for (host, caFile) in [
      ("pds.test", nil), ("other.test", server.certificate), ("pds.test", none),
    ] {
      let error = await #expect(throws: TransportError.self) {
        _ = try await get(server, host: host, trusting: caFile)
      }
      guard case .notSecure = error?.reason else {
        Issue.record("it is \(String(describing: error))")
        continue
      }
      #expect(error?.isTransient == false)
    }
  }
}
