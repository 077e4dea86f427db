import Foundation
import HTTP
import StandIn
import TestSupport
import Testing

/// nginx on this machine, with TLS and HTTP/2, which the stand-in does not speak.
final class Nginx: @unchecked Sendable {
  let port: UInt16
  let certificate: TestCertificate
  private let process = Process()
  private let folder: TemporaryFolder

  /// Where the program is; nil if it is not installed.
  static let program = ["/usr/sbin/nginx", "/opt/homebrew/bin/nginx", "/usr/local/bin/nginx"]
    .first { FileManager.default.isExecutableFile(atPath: $0) }

  /// Serves one file of this content at `/file`.
  init(_ content: [UInt8]) throws {
    guard let program = Self.program else { throw TestCertificate.Failed() }
    folder = try TemporaryFolder()
    certificate = try TestCertificate(in: folder)
    try Data(content).write(to: URL(filePath: folder.file("file")))
    // A port that was free a moment ago.
    let placeholder = try LoopbackServer { _, _ in }
    port = placeholder.port
    placeholder.stop()
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map { "\($0)_temp_path \(folder.file($0));" }.joined(separator: " ")
    let configuration = """
      daemon off; worker_processes 1; pid \(folder.file("pid")); error_log \(folder.file("errors"));
      events { worker_connections 64; }
      http {
        log_format version $server_protocol; access_log \(folder.file("log")) version; \(paths)
        server {
          listen 127.0.0.1:\(port) ssl http2; root \(folder.path);
          ssl_certificate \(certificate.path); ssl_certificate_key \(certificate.key);
        }
      }
      """
    try Data(configuration.utf8).write(to: URL(filePath: folder.file("configuration")))
    process.executableURL = URL(filePath: program)
    process.arguments = ["-p", folder.path, "-c", folder.file("configuration")]
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  /// The versions of HTTP that requests came in.
  var versions: [String] {
    get throws {
      try String(contentsOfFile: folder.file("log"), encoding: .utf8).split(separator: "\n")
        .map(String.init)
    }
  }

  // The master ends its worker on request.
  deinit {
    kill(process.processIdentifier, SIGTERM)
    process.waitUntilExit()
  }
}

@Suite(
  .enabled(
    if: Nginx.program != nil && TestCertificate.program != nil,
    "nginx or openssl is not installed, which make the server here"))
struct `a server that speaks HTTP/2` {
  private func transport(_ server: Nginx) throws -> CurlTransport {
    var options = NetworkOptions(userAgent: "test")
    options.caFile = server.certificate.path
    options.hostPins = ["pds.test:\(server.port):127.0.0.1"]
    options.stallSeconds = 10
    return try CurlTransport(options)
  }

  private func get(_ transport: CurlTransport, _ server: Nginx, isStreamed: Bool) async throws
    -> [UInt8]
  {
    let request = HTTPRequest(
      .get, "https://pds.test:\(server.port)/file", acceptsCompression: false,
      isStreamed: isStreamed)
    // It may take a moment until the server listens.
    for _ in 0..<100 {
      do {
        return try await transport.send(request).read()
      } catch let error as TransportError {
        guard case .notConnected = error.reason else { throw error }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
    throw TestCertificate.Failed()
  }

  @Test func `is spoken to in HTTP/1.1, where each answer has a connection to itself`()
    async throws
  {
    let body = content(100_000)
    let server = try Nginx(body)
    let transport = try transport(server)
    #expect(try await get(transport, server, isStreamed: false) == body)
    try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for index in 0..<300 {
        if index >= 16 { #expect(try await group.next() == body) }
        group.addTask { try await get(transport, server, isStreamed: index % 2 == 0) }
      }
      for try await bytes in group { #expect(bytes == body) }
    }
    // The last of them is written down a little after it was answered.
    for _ in 0..<100 where try server.versions.count < 301 {
      try await Task.sleep(for: .milliseconds(50))
    }
    #expect(try server.versions.count == 301)
    #expect(try Set(server.versions) == ["HTTP/1.1"])
  }
}
