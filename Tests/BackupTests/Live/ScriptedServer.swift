import ATProtocol
import HTTP
import IPLD
import Synchronization
import XRPC

/// A server that a closure plays: without connections, and without time.
final class ScriptedServer: HTTPTransport {
  /// What it answers.
  struct Answer {
    var status = 200
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    /// After how many bytes of the body the connection breaks; nil if it does not.
    var breaksAfter: Int?

    /// Bytes, of which the head says how many there are, unless told otherwise.
    static func bytes(_ body: [UInt8], saysLength: Bool = true) -> Answer {
      Answer(
        fields: saysLength ? [(name: "content-length", value: "\(body.count)")] : [], body: body)
    }

    static func json(_ text: String) -> Answer { Answer(body: Array(text.utf8)) }

    static func error(_ status: Int, _ name: String) -> Answer {
      Answer(status: status, body: Array(#"{"error":"\#(name)","message":"no"}"#.utf8))
    }
  }

  /// What is asked: the request, and where the body is to begin.
  struct Question {
    let request: HTTPRequest
    let offset: UInt64
    /// The method's name, or the path.
    var method: String {
      String(request.url.split(separator: "?")[0].split(separator: "/").last ?? "")
    }
    /// The host.
    var host: String { String(request.url.split(separator: "/")[1]) }

    /// A parameter of the query, as it was before it was encoded.
    subscript(_ name: String) -> String? {
      guard let query = request.url.split(separator: "?").dropFirst().first else { return nil }
      for pair in query.split(separator: "&") where pair.hasPrefix("\(name)=") {
        return String(pair.dropFirst(name.count + 1)).replacing("%3A", with: ":")
      }
      return nil
    }
  }

  private let script: @Sendable (Question) throws -> Answer
  private let log = Mutex<[Question]>([])

  init(_ script: @escaping @Sendable (Question) throws -> Answer) { self.script = script }

  /// What was asked.
  var questions: [Question] { log.withLock { $0 } }

  /// How often something was asked.
  func count(of method: String) -> Int { questions.count { $0.method.hasSuffix(method) } }

  /// A network on which there is nothing but this server.
  func network(_ change: (inout NetworkOptions) -> Void = { _ in }) -> Network {
    var options = NetworkOptions(userAgent: "tests")
    options.plcDirectory = "https://plc.test"
    options.handleResolver = "https://resolver.test"
    change(&options)
    return Network(options, transport: self, clock: PassingClock(), chance: { 0 })
  }

  func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    try Task.checkCancellation()
    let question = Question(request: request, offset: request.offset)
    log.withLock { $0.append(question) }
    let answer = try script(question)
    var pieces: [[UInt8]] = []
    var rest = answer.body[...]
    if let length = answer.breaksAfter { rest = rest.prefix(length) }
    while !rest.isEmpty {
      pieces.append(Array(rest.prefix(16 << 10)))
      rest = rest.dropFirst(16 << 10)
    }
    var response = HTTPResponse(
      status: answer.status, fields: answer.fields, url: request.url,
      body: HTTPBody(
        pieces,
        endingWith: answer.breaksAfter.map { _ in
          TransportError(.cutOff("it broke"), url: request.url)
        }))
    response.offset = answer.status == 206 ? question.offset : 0
    return response
  }
}

/// A clock on which every wait ends at once.
final class PassingClock: NetworkClock {
  private let time = Mutex(0.0)

  var now: Double { time.withLock { $0 } }
  var unixTime: Double { 1_800_000_000 + now }

  func sleep(_ seconds: Double) async throws {
    for _ in 0..<10 { await Task.yield() }
    try Task.checkCancellation()
    time.withLock { $0 += seconds }
  }
}
