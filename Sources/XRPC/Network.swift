/// The way to servers that everything in a run shares: connections, the budget of each host, what the user set.
public final class Network: Sendable {
  /// What the user set.
  public let options: NetworkOptions
  /// What carries requests.
  public let transport: any HTTPTransport

  /// The way to servers under these options.
  ///
  /// - Throws: ``TransportError`` if there is no usable libcurl.
  public init(_ options: NetworkOptions) throws {
    self.options = options
    transport = try CurlTransport(options)
  }

  /// Fetches a small document.
  ///
  /// - Parameters:
  ///   - url: where it is.
  ///   - limit: how many bytes it may have, decompressed.
  ///   - accept: the media types to ask for.
  ///   - retries: whether what fails for a reason that may pass is tried again.
  /// - Returns: The head of the answer and its body, whatever the status is.
  /// - Throws: ``TransportError`` if no whole answer came or it is too long; `CancellationError`.
  public func get(_ url: String, limit: Int, accept: String? = nil, retries: Bool = true)
    async throws -> (HTTPResponse, [UInt8])
  {
    let parsed = try HTTPURL(url)
    let fields = accept.map { [(name: "Accept", value: $0)] } ?? []
    let sink = DocumentSink(limit: limit, url: "\(parsed)")
    let (response, errorBody) = try await transport.send(
      HTTPRequest(.get, url, fields: fields), to: sink)
    return (response, response.isSuccess ? sink.bytes : errorBody)
  }
}
