/// The least of HTTP clients, with which one program controls the server in another, and tests look
/// at the server by itself.
package enum LoopbackClient {
  /// Asks for a path on a port of 127.0.0.1; returns the status and the body.
  ///
  /// - Throws: if there is no connection; an invalid answer has the status 0.
  package static func get(port: UInt16, path: String, token: String? = nil) throws -> (
    status: Int, body: String
  ) {
    let (status, body) = try send("GET", port: port, path: path, body: nil, type: nil, token: token)
    return (status, String(decoding: body, as: UTF8.self))
  }

  /// Posts to a path on a port of 127.0.0.1; returns the status and the body.
  ///
  /// - Throws: if there is no connection; an invalid answer has the status 0.
  package static func post(
    port: UInt16, path: String, body: [UInt8]?, type: String?, token: String? = nil
  ) throws -> (status: Int, body: [UInt8]) {
    try send("POST", port: port, path: path, body: body, type: type, token: token)
  }

  private static func send(
    _ method: String, port: UInt16, path: String, body: [UInt8]?, type: String?, token: String?
  ) throws -> (status: Int, body: [UInt8]) {
    let socket = try Socket.connecting(to: port)
    defer { socket.close() }
    var head = "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n"
    if let type { head += "Content-Type: \(type)\r\n" }
    if let token { head += "Authorization: Bearer \(token)\r\n" }
    if let body { head += "Content-Length: \(body.count)\r\n" }
    let request = Array((head + "\r\n").utf8) + (body ?? [])
    guard socket.send(request.span) == request.count else { return (0, []) }
    var answer: [UInt8] = []
    while case .bytes = socket.receive(into: &answer) {}
    guard let end = answer.firstRange(of: Array("\r\n\r\n".utf8)) else { return (0, answer) }
    let words = String(decoding: answer[..<end.lowerBound], as: UTF8.self)
      .split(separator: " ", maxSplits: 2)
    return (words.count > 1 ? Int(words[1]) ?? 0 : 0, Array(answer[end.upperBound...]))
  }
}
