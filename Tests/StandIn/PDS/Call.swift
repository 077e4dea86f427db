import ATProtocol
import IPLD

/// A request that is being answered, and how the server behaves while it is.
struct Call {
  let request: LoopbackRequest
  let response: LoopbackResponse
  let behaviour: Behaviour
  /// What goes wrong with it, if it is something that the answer itself has to bring about.
  var fault: Fault?

  /// An answer that is an error.
  struct Refused: Error {
    var status: Int
    var error: String
    var message: String
    var isText = false

    init(_ status: Int, _ error: String, _ message: String) {
      self.status = status
      self.error = error
      self.message = message
    }

    /// - Parameter status: of the declared refusal.
    init(_ kind: Behaviour.Refusal, _ status: Int, _ error: String, _ message: String) {
      switch kind {
      case .declared: self.init(status, error, message)
      case .invalidRequest: self.init(400, "InvalidRequest", message)
      case .internalError: self.init(500, "InternalServerError", "Internal Server Error")
      case .text:
        self.init(status == 401 ? 401 : 404, error, message)
        isText = true
      }
    }
  }

  func send(_ refusal: Refused) throws {
    response.status = refusal.status
    if refusal.isText {
      try response.send(refusal.message, type: "text/plain; charset=utf-8")
    } else {
      try send(["error": .string(refusal.error), "message": .string(refusal.message)])
    }
  }

  func refuse(_ status: Int, _ error: String, _ message: String) throws {
    try send(Refused(status, error, message))
  }

  func send(_ json: IPLDMap) throws {
    try response.send(IPLDValue.map(json).json(), type: "application/json; charset=utf-8")
  }
}
