/// The least of HTTP clients, with which one program controls the server in another.
public enum LoopbackClient {
  /// Asks for a path on a port of 127.0.0.1; answers the status and the body.
  ///
  /// - Throws: if there is no connection; an answer that is none has the status 0.
  public static func get(port: UInt16, path: String) throws -> (status: Int, body: String) {
    let socket = try Socket.connecting(to: port)
    defer { socket.close() }
    let request = Array(
      "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\r\n".utf8)
    guard socket.send(request.span) == request.count else { return (0, "") }
    var answer: [UInt8] = []
    while case .bytes = socket.receive(into: &answer) {}
    let text = String(decoding: answer, as: UTF8.self)
    guard let end = text.firstRange(of: "\r\n\r\n") else { return (0, text) }
    let words = text[..<end.lowerBound].split(separator: " ", maxSplits: 2)
    return (words.count > 1 ? Int(words[1]) ?? 0 : 0, String(text[end.upperBound...]))
  }
}
