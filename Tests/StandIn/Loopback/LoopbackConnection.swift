/// The requests that arrive on one connection, one after the other.
struct LoopbackConnection {
  /// The longest head that is read, in bytes.
  private static let maximumHead = 256 << 10
  /// The longest body that is read, in bytes.
  private static let maximumBody = 512 << 20

  let socket: Socket
  let number: Int
  /// The result of the last wait for bytes.
  private(set) var lastArrival = Socket.Arrival.bytes(0)
  private var buffer: [UInt8] = []

  init(socket: Socket, number: Int) {
    self.socket = socket
    self.number = number
  }

  /// Waits for the next request; nil when there is none, or impossible times read.
  ///
  /// - Parameter takesBody: called with the head; returns whether to read the body as well; if not,
  ///   the client is waited for until it goes.
  mutating func next(_ takesBody: (LoopbackRequest) -> Bool) -> LoopbackRequest? {
    var searched = 0
    while true {
      if let end = endOfHead(from: searched) {
        let head = buffer[..<end]
        guard let bare = LoopbackRequest(head: head, body: [], connection: number) else {
          return nil
        }
        let length = bare["content-length"].flatMap { Int($0) } ?? 0
        guard 0...Self.maximumBody ~= length else { return nil }
        guard takesBody(bare) else {
          while !socket.hasHungUp(within: 1000) {}
          return nil
        }
        if bare["expect"]?.lowercased() == "100-continue" {
          let proceed = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
          guard socket.send(proceed.span) == proceed.count else { return nil }
        }
        while buffer.count < end + 4 + length {
          guard fill() else { return nil }
        }
        let body = Array(buffer[(end + 4)..<(end + 4 + length)])
        let request = LoopbackRequest(head: head, body: body, connection: number)
        buffer.removeFirst(end + 4 + length)
        return request
      }
      guard buffer.count <= Self.maximumHead else { return nil }
      searched = max(0, buffer.count - 3)
      guard fill() else { return nil }
    }
  }

  private mutating func fill() -> Bool {
    lastArrival = socket.receive(into: &buffer)
    if case .bytes = lastArrival { return true }
    return false
  }

  /// Where the empty line after the head begins.
  private func endOfHead(from start: Int) -> Int? {
    guard buffer.count >= 4 else { return nil }
    var index = start
    while index + 4 <= buffer.count {
      if buffer[index] == 13, buffer[index + 1] == 10, buffer[index + 2] == 13,
        buffer[index + 3] == 10
      {
        return index
      }
      index += 1
    }
    return nil
  }
}
