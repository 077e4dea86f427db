import ATProtocol
import HTTP
import Synchronization
import XRPC

/// Servers that a test makes up: what each URL is answered with, and what was asked.
final class FakeFetcher: DocumentFetcher {
  /// What a URL is answered with.
  enum Answer: Sendable {
    case body(String, status: Int = 200)
    case failure(TransportError.Reason)
    /// No answer until the task is cancelled.
    case never
  }

  private let answers: [String: Answer]
  private let requests = Mutex<[String]>([])

  init(_ answers: [String: Answer] = [:]) { self.answers = answers }

  /// The URLs that were requested, in order.
  var asked: [String] { requests.withLock { $0 } }

  func get(_ url: String, limit: Int, accept: String?, retries: Bool) async throws -> (
    HTTPResponse, [UInt8]
  ) {
    requests.withLock { $0.append(url) }
    switch answers[url] {
    case .body(let text, let status)?:
      guard text.utf8.count <= limit else { throw TransportError(.tooLong(limit: limit), url: url) }
      return (HTTPResponse(status: status, url: url), Array(text.utf8))
    case .failure(let reason)?: throw TransportError(reason, url: url)
    case .never?:
      try await Task.sleep(for: .seconds(3600))
      throw CancellationError()
    case nil: throw TransportError(.unknownHost, url: url)
    }
  }
}

/// DNS that a test makes up.
final class FakeDNS: TXTResolver {
  private let records: [String: Result<[String], DNSError>]
  private let isSilent: Bool
  private let questions = Mutex<[String]>([])

  /// Names without records do not exist.
  init(_ records: [String: Result<[String], DNSError>] = [:], isSilent: Bool = false) {
    self.records = records
    self.isSilent = isSilent
  }

  /// One DID under each handle.
  convenience init(_ dids: [String: String]) {
    self.init(
      Dictionary(
        uniqueKeysWithValues: dids.map { ("_atproto.\($0)", .success(["did=\($1)"])) }))
  }

  /// The names that were requested, in order.
  var asked: [String] { questions.withLock { $0 } }

  func records(of name: String) async throws -> [String] {
    questions.withLock { $0.append(name) }
    if isSilent { try await Task.sleep(for: .seconds(3600)) }
    return try records[name]?.get() ?? []
  }
}

/// The accounts of these tests.
enum Sample {
  static let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
  static let other = "did:plc:z72i7hdynmk6r22z27h6tvur"
  static let key = "zQ3she4kaQ448PnMgnWLrDxKj4fnLBeQbp8NZxEzET5EF28vf"

  static func document(
    _ id: String = did, handle: String? = "alice.bar", pds: String? = "https://pds.bar",
    key: String? = key
  ) -> String {
    let names = handle.map { "\"at://\($0)\"" } ?? ""
    let method =
      key.map {
        #"{"id": "\#(id)#atproto", "type": "Multikey", "controller": "\#(id)", "publicKeyMultibase": "\#($0)"}"#
      } ?? ""
    let service =
      pds.map {
        ##"{"id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": "\##($0)"}"##
      } ?? ""
    return #"""
      {"id": "\#(id)", "alsoKnownAs": [\#(names)], "verificationMethod": [\#(method)], "service": [\#(service)]}
      """#
  }

  static func options(_ change: (inout NetworkOptions) -> Void = { _ in }) -> NetworkOptions {
    var options = NetworkOptions(userAgent: "test")
    change(&options)
    return options
  }
}
