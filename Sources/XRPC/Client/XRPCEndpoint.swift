internal import ATProtocol
package import HTTP

/// A method of XRPC with its parameters (<https://atproto.com/specs/xrpc>).
package protocol XRPCEndpoint: Sendable {
  /// The errors that the lexicon declares.
  associatedtype DeclaredError: RawRepresentable<String> & Sendable = NoDeclaredError

  /// The name of the method.
  var nsid: String { get }
  /// How it is called.
  static var method: HTTPRequest.Method { get }
  /// Whether a call that was not answered may be made again without a second thought.
  static var isRepeatable: Bool { get }
  /// Whether servers have limits for this method alone, which the caller waits for.
  static var hasOwnLimit: Bool { get }
  /// The parameters in the query; the same name may occur several times.
  var parameters: [(name: String, value: String)] { get }
  /// The header fields that it takes beside the usual ones.
  var fields: [(name: String, value: String)] { get }
  /// The JSON that is sent along with a call that has something done.
  var input: [UInt8] { get }
  /// What in the input or its like must not come back in a message.
  var secrets: [Secret] { get }
}

extension XRPCEndpoint {
  /// A query.
  package static var method: HTTPRequest.Method { .get }
  /// It may, unless it has something done.
  package static var isRepeatable: Bool { method == .get }
  /// They have for what has something done.
  package static var hasOwnLimit: Bool { method == .post }
  /// None.
  package var parameters: [(name: String, value: String)] { [] }
  /// None.
  package var fields: [(name: String, value: String)] { [] }
  /// Nothing.
  package var input: [UInt8] { [] }
  /// None.
  package var secrets: [Secret] { [] }
}

/// A method that answers with a small JSON object.
package protocol XRPCQuery: XRPCEndpoint {
  /// What the answer says.
  associatedtype Output: Sendable

  /// How many bytes of JSON are accepted.
  static var maximumBytes: Int { get }
  /// Whether answers hold tokens, so that no message may quote them.
  static var answersWithSecrets: Bool { get }
  /// Reads the answer, tolerant of what servers leave out or add.
  ///
  /// - Throws: ``AnswerFault`` if something is missing that there is no answer without.
  static func read(_ answer: Answer) throws(AnswerFault) -> Output
}

extension XRPCQuery {
  /// A mebibyte: a thousand CIDs are some 60 KiB.
  package static var maximumBytes: Int { 1 << 20 }
  /// They do not.
  package static var answersWithSecrets: Bool { false }
}

extension XRPCQuery {
  /// Reads the body of an answer of success, whatever its media type is said to be.
  ///
  /// - Throws: ``XRPCError`` if it is something else, the page of a proxy for one.
  func read(_ body: [UInt8], _ delivery: Network.Delivery, hiding secrets: [Secret])
    throws(XRPCError) -> Output
  {
    let fault: String
    do throws(JSONError) {
      let answer = Answer(try DataModelJSON.decode(body))
      do throws(AnswerFault) {
        return try Self.read(answer)
      } catch {
        fault = error.what
      }
    } catch {
      fault = "it is not JSON: \(error)"
    }
    throw XRPCError(
      nsid, delivery, body: Self.answersWithSecrets ? [] : body, fault: fault, hiding: secrets)
  }
}

/// A method that answers with bytes, however many.
package protocol XRPCStream: XRPCEndpoint {
  /// Whether the server may have to prepare the answer, so that nothing may come for a while.
  static var isPrepared: Bool { get }
  /// Whether the server passes the call on to another service, whose failures are not its own.
  static var isForwarded: Bool { get }
}

extension XRPCStream {
  /// It answers itself.
  package static var isForwarded: Bool { false }
}

/// A method that has something done and answers with nothing.
package protocol XRPCProcedure: XRPCEndpoint {}

extension XRPCProcedure {
  /// It has something done.
  package static var method: HTTPRequest.Method { .post }
}

/// A method that bytes are sent to, however many.
package protocol XRPCUpload: XRPCEndpoint {
  /// What is sent.
  var body: RequestBody { get }
  /// Its media type.
  var contentType: String { get }
  /// For how many seconds the server may work on it without a word.
  static var patience: Int { get }
}

extension XRPCUpload {
  /// It has something done.
  package static var method: HTTPRequest.Method { .post }
  /// The same bytes again come to the same.
  package static var isRepeatable: Bool { true }
}

/// The errors of a method whose lexicon declares none.
package enum NoDeclaredError: RawRepresentable, Sendable {
  /// There is none.
  package init?(rawValue: String) { nil }
  /// There is none.
  package var rawValue: String { switch self {} }
}

/// What an answer does not say, or not as it should.
package struct AnswerFault: Error, Equatable {
  /// What is wrong, in words.
  package let what: String
  /// A fault.
  package init(_ what: String) { self.what = what }
}
