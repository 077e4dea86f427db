/// A request and what became of the answer: a line in the log of a ``LoopbackServer``.
package struct LoopbackExchange: Sendable {
  /// Its place in the log, counted from 0.
  package let number: Int
  /// The method of the request.
  package let method: String
  /// The path, decoded.
  package let path: String
  /// The parameters of the query.
  package let query: [(name: String, value: String)]
  /// The header fields, names in lower case; of an `Authorization` field only that there was one.
  package let fields: [(name: String, value: String)]
  /// How many bytes were sent along with the request.
  package let bodyLength: Int
  /// Which connection it came on.
  package let connection: Int
  /// When it arrived, in seconds since the server was started.
  package let arrived: Double
  /// When the answer was out, or the connection was gone; nil until then.
  package internal(set) var ended: Double?
  /// The status that was answered; nil as long as there is none.
  package internal(set) var status: Int?
  /// How many bytes of the body the system took.
  package internal(set) var bytesSent = 0
  /// Whether all of the answer was sent, and as it should be.
  package internal(set) var isWhole = false
  /// Whether the client has read everything that was sent; nil as long as that is not known, which
  /// is until it asks for something else or ends the connection.
  package internal(set) var wasRead: Bool?
  /// What was done to the answer, if something was.
  package internal(set) var fault: String?

  /// The first header field of this name, in lower case.
  package subscript(_ name: String) -> String? { fields.first { $0.name == name }?.value }

  /// The first parameter of this name.
  package func parameter(_ name: String) -> String? { query.first { $0.name == name }?.value }

  /// Whether the client has received all of a good answer.
  package var isDelivered: Bool { isWhole && wasRead == true && status.map { $0 < 300 } == true }

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
