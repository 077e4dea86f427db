/// The receiving of one answer: what of it goes to the sink, what is kept, and whether it is whole.
///
/// The body of an answer of success goes to the sink; of any other, so much as is worth showing is kept.
struct Reception {
  /// How an answer came out.
  struct Outcome: Sendable {
    var response: HTTPResponse
    var errorBody: [UInt8] = []
    /// The server did not go on where it was asked to; everything has to be asked for, from the start.
    var mustStartOver = false
  }

  /// Thrown to end a transfer of which nothing more is wanted; it has come out well.
  struct Enough: Error {}

  private let url: HTTPURL
  private let sink: any ResponseSink
  /// Where the request asked the body to begin.
  private let offset: UInt64
  private var head = ResponseHead()
  private var outcome: Outcome?
  private var flowsToSink = false
  private var received: UInt64 = 0

  init(of url: HTTPURL, from offset: UInt64, sink: any ResponseSink) {
    self.url = url
    self.offset = offset
    self.sink = sink
  }

  /// Takes a line of the head.
  ///
  /// - Throws: ``TransportError`` if the head is malformed; ``Enough``; what the sink throws when it begins.
  mutating func takeLine(_ line: Span<UInt8>, transfer: any Transfer) throws {
    let wasComplete = head.isComplete
    do throws(ResponseHead.Fault) {
      try head.append(line)
    } catch {
      throw TransportError(.malformedAnswer(error.what), url: "\(url)")
    }
    guard head.isComplete, !wasComplete else { return }
    let response = HTTPResponse(status: head.status, fields: head.fields, url: url.text)
    outcome = Outcome(response: response)
    switch bodyStart(of: response) {
    case nil:
      outcome?.mustStartOver = true
      throw Enough()
    case let start? where response.isSuccess:
      flowsToSink = true
      try sink.begin(response, offset: start, transfer: transfer)
    default: break
    }
  }

  /// Takes a piece of the body, or none of it for now.
  ///
  /// - Throws: ``Enough``; what the sink throws.
  mutating func takeBody(_ bytes: Span<UInt8>) throws -> Flow {
    guard flowsToSink else {
      let count = min(bytes.count, maximumErrorBody - (outcome?.errorBody.count ?? 0))
      for index in 0..<count { outcome?.errorBody.append(bytes[index]) }
      if count < bytes.count { throw Enough() }
      return .proceed
    }
    let flow = try sink.take(bytes)
    if case .proceed = flow { received += UInt64(bytes.count) }
    return flow
  }

  /// The outcome, when no more is to come.
  ///
  /// - Throws: ``TransportError`` if the head never ended, or the body is shorter than the head says.
  func finish() throws(TransportError) -> Outcome {
    guard let outcome else {
      throw TransportError(.cutOff("it has no head"), url: "\(url)")
    }
    if flowsToSink, let expected = outcome.response.contentLength, received < expected {
      throw TransportError(.cutOff("\(received) of \(expected) bytes came"), url: "\(url)")
    }
    return outcome
  }

  /// The outcome, when ``Enough`` has been thrown.
  var outcomeSoFar: Outcome? { outcome }

  /// Where in the whole body the answer's begins; nil if the whole has to be asked for.
  private func bodyStart(of response: HTTPResponse) -> UInt64? {
    switch response.status {
    case 206:
      // Also a part that was not asked for is the whole if it begins at 0: whether it ends too early the content tells.
      let range = response["content-range"].flatMap { ContentRange($0) }
      return range?.first == offset ? offset : nil
    case 416: return offset == 0 ? 0 : nil
    default: return 0
    }
  }
}
