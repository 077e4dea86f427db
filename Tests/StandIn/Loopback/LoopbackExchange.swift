/// A request and what became of the answer: a line in the log of a ``LoopbackServer``.
public struct LoopbackExchange: Sendable {
  /// Its place in the log, counted from 0.
  public let number: Int
  /// The method of the request.
  public let method: String
  /// The path, decoded.
  public let path: String
  /// The parameters of the query.
  public let query: [(name: String, value: String)]
  /// The header fields, names in lower case; of an `Authorization` field only that there was one.
  public let fields: [(name: String, value: String)]
  /// How many bytes were sent along with the request.
  public let bodyLength: Int
  /// Which connection it came on.
  public let connection: Int
  /// When it arrived, in seconds since the server was started.
  public let arrived: Double
  /// When the answer was out, or the connection was gone; nil until then.
  public internal(set) var ended: Double?
  /// The status that was answered; nil as long as there is none.
  public internal(set) var status: Int?
  /// How many bytes of the body the system took.
  public internal(set) var bytesSent = 0
  /// Whether all of the answer was sent, and as it should be.
  public internal(set) var isWhole = false
  /// Whether the client has read everything that was sent; nil as long as that is not known, which
  /// is until it asks for something else or ends the connection.
  public internal(set) var wasRead: Bool?
  /// What was done to the answer, if something was.
  public internal(set) var fault: String?

  /// The first header field of this name, in lower case.
  public subscript(_ name: String) -> String? { fields.first { $0.name == name }?.value }

  /// The first parameter of this name.
  public func parameter(_ name: String) -> String? { query.first { $0.name == name }?.value }

  /// Whether the client has got all of a good answer.
  public var isDelivered: Bool { isWhole && wasRead == true && status.map { $0 < 300 } == true }

  init(number: Int, request: LoopbackRequest, arrived: Double) {
    self.number = number
    method = request.method
    path = request.path
    bodyLength = request.body.count
    query = request.query
    fields = request.fields.map {
      $0.name == "authorization" ? ($0.name, "(not kept)") : $0
    }
    connection = request.connection
    self.arrived = arrived
  }
}
