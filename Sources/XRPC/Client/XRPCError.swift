internal import ATProtocol
public import HTTP
internal import IPLD

/// A server's answer that is not what was requested.
public struct XRPCError: NetworkFault, Equatable, Sendable, CustomStringConvertible {
  /// The method that was called, such as `com.atproto.sync.getBlob`.
  package var endpoint: String
  /// The server that answered.
  package var host: String
  /// The status of the answer; 200 if its body is wrong.
  public var status: Int
  /// The name of the error as the server gave it (`error`), declared or not; nil if the body is not
  /// an XRPC error.
  public var name: String?
  /// What the server says about it, in one line.
  package var message: String?
  /// The beginning of a body that is not an XRPC error: text, or the page of a proxy or of a
  /// captive portal.
  package var excerpt: String?
  /// What is wrong with the body of a successful answer; nil if the answer was not one.
  package var fault: String?
  /// Whether it is not the server's answer, but a page for browsers of something before it.
  package var isPage = false
  /// How often it was tried.
  package var attempts = 1
  /// After how many seconds the server wants to be asked again; nil if it does not say.
  package var wait: Double?

  /// The error as one of those that the endpoint declares; nil if it is another one, or has no
  /// name.
  package func declared<E: RawRepresentable<String>>(_ type: E.Type) -> E? {
    name.flatMap { E(rawValue: $0) }
  }

  /// Whether the server may answer later.
  public var mayPass: Bool { isPage || fault == nil && HTTPStatus.mayPass(status) }

  /// The sentence for people.
  public var description: String {
    var text = "\(endpoint) at \(host): "
    if isPage {
      text += "a page for a browser stands before the server (status \(status))"
    } else if let fault {
      text += "the answer is malformed (\(fault))"
    } else {
      text += "status \(status)"
    }
    if let name { text += ", \(name)" }
    if let message, !message.isEmpty { text += ": \(message)" }
    if let excerpt, !excerpt.isEmpty { text += ": '\(excerpt)'" }
    if attempts > 1 { text += ", \(attempts) times" }
    return text
  }
}

extension XRPCError {
  /// The error for an answer.
  ///
  /// - Parameters:
  ///   - call: what was called.
  ///   - delivery: the result of the request.
  ///   - body: what came.
  ///   - fault: what is wrong with that, if the answer is a success.
  ///   - secrets: what was sent along, and must not come back in a message.
  init(
    _ call: XRPCCall, _ delivery: Network.Delivery, body: [UInt8], fault: String? = nil,
    hiding secrets: [Secret]
  ) {
    func shown(_ text: String) -> String {
      Excerpt.of(secrets.reduce(text) { $1.removed(from: $0) })
    }
    endpoint = call.nsid
    let url = delivery.response.url
    host = (try? HTTPURL(url))?.authority.host ?? url
    status = delivery.response.status
    attempts = delivery.attempts
    wait = delivery.wait
    self.fault = fault
    isPage = delivery.response.isForBrowsers(body)
    if fault == nil, let json = Answer(body)?.json, let error = json["error"]?.string {
      name = shown(error)
      message = json["message"]?.string.map(shown)
    } else if !call.answersWithSecrets {
      excerpt = shown(String(decoding: body.prefix(maximumErrorBody), as: UTF8.self))
    }
  }
}
