import Foundation
import IPLD
import TestSupport

extension StandInPDS {
  /// What goes wrong with the answer to a request.
  func fault(for request: LoopbackRequest) -> Fault? {
    update { state in
      if let index = state.rules.firstIndex(where: { $0.concerns(request) }) {
        if let remaining = state.rules[index].remaining {
          state.rules[index].remaining = remaining - 1
        }
        return state.rules[index].fault
      }
      guard let random = state.random, request.path.hasPrefix("/xrpc/"),
        random.endpoint.map({ request.path.hasSuffix($0) }) ?? true
      else { return nil }
      let attempt = state.attempts[request.target, default: 0]
      state.attempts[request.target] = attempt + 1
      let kinds = random.kinds.filter { $0.suits(request) }
      var generator = random.generator(request.target, attempt)
      guard Double(generator.next() >> 11) / Double(1 << 53) < random.rate else { return nil }
      let kind = kinds.randomElement(using: &generator)
      return kind?.moved(to: Double.random(in: 0.05..<0.95, using: &generator))
    }
  }
}

extension Fault {
  /// Whether it can befall the answer to a request.
  func suits(_ request: LoopbackRequest) -> Bool {
    switch self {
    case .lacksBlocks, .badSignature, .otherAccount, .previousRevision, .rootless:
      request.path.hasSuffix("getRepo")
    case .otherContent: request.path.hasSuffix("getBlob")
    default: true
    }
  }

  /// The same at another place of the body, if it has a place.
  func moved(to place: Distortion.Place) -> Fault {
    switch self {
    case .distorted(.cut): .distorted(.cut(at: place))
    case .distorted(.reset): .distorted(.reset(at: place))
    case .distorted(.shortened): .distorted(.shortened(to: place))
    case .distorted(.corrupted): .distorted(.corrupted(at: place))
    case .distorted(.stalled): .distorted(.stalled(at: place))
    default: self
    }
  }

  /// Answers, if it is a fault that takes the place of the answer; otherwise the answer has to
  /// bring it about.
  func answer(_ call: Call) throws -> Bool {
    let (request, response) = (call.request, call.response)
    switch self {
    case .status(let status):
      try call.refuse(
        status, status < 500 ? "InvalidRequest" : "InternalServerError", "made to fail")
    case .page(let status):
      response.status = status
      try response.send(
        "<html><head><title>\(status)</title></head><body>nginx</body></html>\n",
        type: "text/html")
    case .tooManyRequests(let seconds):
      if let seconds { response.fields.append(("Retry-After", "\(seconds)")) }
      try call.refuse(429, "RateLimitExceeded", "Rate Limit Exceeded")
    case .dropped: response.close()
    case .reset: response.reset()
    case .silent: try response.pauseForEver()
    case .late(let seconds):
      try response.pause(seconds)
      return false
    case .held: return false
    case .distorted(let distortion):
      response.distortion = distortion
      return false
    case .captivePortal:
      try response.send(
        "<html><body><h1>Welcome</h1><form>Please log in to the wireless network</form></body></html>\n",
        type: "text/html; charset=utf-8")
    case .redirect(let status, let target):
      response.status = status
      response.fields.append(
        ("Location", target.replacingOccurrences(of: "{path}", with: request.target)))
      try response.send("moved\n")
    case .largeHead(let bytes):
      let line = Array("X-Filler: \(String(repeating: "x", count: 1000))\r\n".utf8)
      try response.sendRaw(Array("HTTP/1.1 200 OK\r\n".utf8))
      for _ in 0..<(bytes / line.count) { try response.sendRaw(line) }
      try response.sendRaw(Array("Content-Length: 2\r\n\r\n{}".utf8))
      response.close()
    case .endlessHead:
      let line = Array("X-Filler: \(String(repeating: "x", count: 1000))\r\n".utf8)
      try response.sendRaw(Array("HTTP/1.1 200 OK\r\n".utf8))
      while true { try response.sendRaw(line) }
    case .garbage:
      try response.sendRaw(Array("220 mail.example.com ESMTP\r\n\r\nwho are you?\r\n".utf8))
      response.close()
    case .bomb(let bytes):
      response.fields.append(("Content-Encoding", "gzip"))
      try response.send(Gzip.bomb(of: bytes), type: "application/json")
    case .deepJSON(let depth):
      try response.send(
        [UInt8](repeating: UInt8(ascii: "["), count: depth), type: "application/json")
    case .otherContent, .lacksBlocks, .badSignature, .otherAccount, .previousRevision, .rootless:
      return false
    }
    return true
  }
}
