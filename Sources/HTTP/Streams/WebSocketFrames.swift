/// Takes frames of a WebSocket out of the bytes that a server sends, and makes those of a client.
///
/// ```
/// byte 0: FIN, 3 bits of zero, opcode   byte 1: MASK, length (126: 2 bytes follow, 127: 8)
/// 4 bytes of mask, if MASK              the payload
/// ```
///
/// Source: RFC 6455, section 5.
struct WebSocketFrames {
  /// What a server sends.
  enum Message: Equatable {
    /// A message, all of it.
    case message([UInt8])
    /// It asks whether the client is still there.
    case ping([UInt8])
    /// It says that it is there.
    case pong
    /// It closes the connection, and may say why.
    case close(String)
  }

  /// How long a message may be, in bytes.
  static let longestMessage = 16 << 20
  /// How many frames a message may consist of: each costs more than its bytes.
  static let maximumFragments = 4096
  /// How many control frames may come in ``controlWindow``: servers send one in some seconds.
  static let maximumControlFrames = 100
  /// The time in which they are counted.
  static let controlWindow = Duration.seconds(10)

  private var bytes: [UInt8] = []
  private var start = 0
  /// What has arrived of an unfinished message, and in how many frames.
  private var parts: [UInt8] = []
  private var partCount = 0
  /// The control frames that have arrived since a time.
  private var controlCount = 0
  private var controlStart: ContinuousClock.Instant?

  /// Takes bytes that have arrived.
  mutating func take(_ piece: some Sequence<UInt8>) {
    // What has been read is removed when it is the greater part, so that each byte is moved once or
    // so.
    if start > bytes.count / 2 {
      bytes.removeFirst(start)
      start = 0
    }
    bytes += piece
  }

  /// The next message, if all of it has arrived.
  ///
  /// - Parameter time: when.
  /// - Throws: ``WebSocketError``.
  mutating func next(at time: ContinuousClock.Instant = .now) throws(WebSocketError) -> Message? {
    while let frame = try frame() {
      guard frame.opcode < 8 else { return try control(frame.opcode, frame.payload, time) }
      guard frame.opcode < 3 else {
        throw WebSocketError(why: "a frame with the unknown opcode \(frame.opcode)")
      }
      guard (frame.opcode == 0) == (partCount > 0) else {
        throw WebSocketError(
          why: "a message begins inside another, or continues one that has not begun")
      }
      guard parts.count + frame.payload.count <= Self.longestMessage else {
        throw WebSocketError(why: "a message is longer than \(Self.longestMessage) bytes")
      }
      partCount += 1
      guard partCount <= Self.maximumFragments else {
        throw WebSocketError(why: "a message has more than \(Self.maximumFragments) frames")
      }
      parts += frame.payload
      guard frame.isLast else { continue }
      partCount = 0
      defer { parts = [] }
      return .message(parts)
    }
    return nil
  }

  private mutating func control(
    _ opcode: UInt8, _ payload: ArraySlice<UInt8>, _ time: ContinuousClock.Instant
  ) throws(WebSocketError) -> Message {
    if controlStart.map({ $0 + Self.controlWindow <= time }) ?? true {
      (controlStart, controlCount) = (time, 0)
    }
    controlCount += 1
    guard controlCount <= Self.maximumControlFrames else {
      throw WebSocketError(
        why: "more than \(Self.maximumControlFrames) control frames in \(Self.controlWindow)")
    }
    switch opcode {
    // A status code precedes the text.
    case 8: return .close(String(decoding: payload.dropFirst(2), as: UTF8.self))
    case 9: return .ping(Array(payload))
    case 10: return .pong
    default: throw WebSocketError(why: "a frame with the unknown opcode \(opcode)")
    }
  }

  private mutating func frame() throws(WebSocketError)
    -> (opcode: UInt8, isLast: Bool, payload: ArraySlice<UInt8>)?
  {
    guard bytes.count - start >= 2 else { return nil }
    let (first, second) = (bytes[start], bytes[start + 1])
    guard first & 0x70 == 0 else { throw WebSocketError(why: "a frame uses an extension") }
    guard second & 0x80 == 0 else { throw WebSocketError(why: "a server's frame is masked") }
    var place = start + 2
    var length = Int(second)
    if length > 125 {
      let count = length == 126 ? 2 : 8
      guard bytes.count - place >= count else { return nil }
      let value = bytes[place..<place + count].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      guard value <= UInt64(Self.longestMessage) else {
        throw WebSocketError(why: "a message is longer than \(Self.longestMessage) bytes")
      }
      length = Int(value)
      place += count
    }
    let opcode = first & 0x0f
    let isLast = first & 0x80 != 0
    guard opcode < 8 || isLast && length <= 125 else {
      throw WebSocketError(why: "a control frame is too long, or fragmented")
    }
    guard bytes.count - place >= length else { return nil }
    start = place + length
    return (opcode, isLast, bytes[place..<place + length])
  }

  /// A control frame as a client sends it.
  ///
  /// - Parameters:
  ///   - opcode: 8 to close, 9 for a ping, 10 for a pong.
  ///   - payload: 125 bytes at most.
  static func control(_ opcode: UInt8, _ payload: [UInt8] = []) -> [UInt8] {
    let mask = (0..<4).map { _ in UInt8.random(in: 0...255) }
    let masked = payload.prefix(125).enumerated().map { $1 ^ mask[$0 % 4] }
    return [0x80 | opcode, 0x80 | UInt8(masked.count)] + mask + masked
  }
}
