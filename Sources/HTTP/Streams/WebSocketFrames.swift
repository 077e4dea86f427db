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
    /// It wants to know whether the client is there.
    case ping([UInt8])
    /// It closes the connection.
    case close
  }

  /// That what came is no frame that a server may send.
  struct Malformed: Error, Equatable {
    let why: String
  }

  /// How long a message may be, in bytes.
  static let longestMessage = 16 << 20

  private var bytes: [UInt8] = []
  private var start = 0
  /// The parts of a message that has begun; nil if none has.
  private var parts: [UInt8]?

  /// Takes bytes that have come.
  mutating func take(_ piece: some Sequence<UInt8>) {
    if start > 1 << 16 {
      bytes.removeFirst(start)
      start = 0
    }
    bytes += piece
  }

  /// The next message, if all of it has come.
  ///
  /// - Throws: ``Malformed``.
  mutating func next() throws(Malformed) -> Message? {
    while let frame = try frame() {
      switch frame.opcode {
      case 0, 1, 2:
        guard (frame.opcode == 0) == (parts != nil) else {
          throw Malformed(why: "a message begins within another, or goes on and has not begun")
        }
        let all = (parts ?? []) + frame.payload
        guard all.count <= Self.longestMessage else {
          throw Malformed(why: "a message is too long")
        }
        parts = frame.isLast ? nil : all
        if frame.isLast { return .message(all) }
      case 8: return .close
      case 9: return .ping(Array(frame.payload))
      case 10: continue
      default: throw Malformed(why: "a frame of the unknown kind \(frame.opcode)")
      }
    }
    return nil
  }

  private mutating func frame() throws(Malformed)
    -> (opcode: UInt8, isLast: Bool, payload: ArraySlice<UInt8>)?
  {
    guard bytes.count - start >= 2 else { return nil }
    let (first, second) = (bytes[start], bytes[start + 1])
    guard first & 0x70 == 0 else { throw Malformed(why: "a frame uses an extension") }
    guard second & 0x80 == 0 else { throw Malformed(why: "a server's frame is masked") }
    var place = start + 2
    var length = Int(second)
    if length > 125 {
      let count = length == 126 ? 2 : 8
      guard bytes.count - place >= count else { return nil }
      let value = bytes[place..<place + count].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      guard value <= UInt64(Self.longestMessage) else {
        throw Malformed(why: "a frame is too long")
      }
      length = Int(value)
      place += count
    }
    let opcode = first & 0x0f
    let isLast = first & 0x80 != 0
    guard opcode < 8 || isLast && length <= 125 else {
      throw Malformed(why: "a frame of control is long, or in parts")
    }
    guard bytes.count - place >= length else { return nil }
    start = place + length
    return (opcode, isLast, bytes[place..<place + length])
  }

  /// A frame of control as a client sends it.
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
