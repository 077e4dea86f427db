import Foundation
import HTTP
import TestSupport
import Testing

/// OpenSSL's own server on this machine.
final class TLSServer: @unchecked Sendable {
  let port: Int
  let certificate: String
  private let process: Process
  private let folder: TemporaryFolder

  init() throws {
    guard let program = TestCertificate.program else { throw TestCertificate.Failed() }
    folder = try TemporaryFolder()
    let made = try TestCertificate(in: folder)
    certificate = made.path
    process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = [
      "s_server", "-accept", "127.0.0.1:0", "-cert", certificate, "-key", made.key, "-www",
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    // It prints "ACCEPT 127.0.0.1:12345" when it is ready.
    var said = ""
    while !said.contains("\n") || !said.contains("ACCEPT ") {
      let data = output.fileHandleForReading.availableData
      guard !data.isEmpty else { throw TestCertificate.Failed() }
      said += String(decoding: data, as: UTF8.self)
    }
    let line = said.split(separator: "\n").first { $0.hasPrefix("ACCEPT ") } ?? ""
    guard let port = Int(line.split(separator: ":").last ?? "") else {
      throw TestCertificate.Failed()
    }
    self.port = port
  }

  // It may have been started with signals blocked, except for the one that cannot be.
  deinit {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}

@Suite(
  .enabled(
    if: TestCertificate.program != nil,
    "the openssl program is not installed, which is the server here"))
struct `a server that has to prove who it is` {
  private func get(_ server: TLSServer, host: String, trusting caFile: String?) async throws -> Int
  {
    var options = NetworkOptions(userAgent: "test")
    options.caFile = caFile
    options.hostPins = ["\(host):\(server.port):127.0.0.1"]
    let response = try await CurlTransport(options).send(
      HTTPRequest(.get, "https://\(host):\(server.port)/"))
    _ = try await response.read()
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
