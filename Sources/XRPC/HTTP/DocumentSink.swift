internal import Synchronization

/// Keeps a small document, and no more than its caller can use.
final class DocumentSink: ResponseSink {
  private let limit: Int
  private let url: String
  private let document = Mutex<[UInt8]>([])

  /// A sink for a document of at most `limit` bytes, decompressed; the URL is for messages.
  init(limit: Int, url: String) {
    self.limit = limit
    self.url = url
  }

  /// What has arrived.
  var bytes: [UInt8] { document.withLock { $0 } }

  func begin(_ response: HTTPResponse, offset: UInt64, transfer: any Transfer) throws {
    if let length = response.contentLength, length > UInt64(limit) { throw tooLong }
    document.withLock { $0.removeAll() }
  }

  func take(_ bytes: Span<UInt8>) throws -> Flow {
    let fits = document.withLock { document in
      guard bytes.count <= limit - document.count else { return false }
      document.append(addingCapacity: bytes.count) { output in
        for index in bytes.indices { output.append(bytes[index]) }
      }
      return true
    }
    guard fits else { throw tooLong }
    return .proceed
  }

  private var tooLong: TransportError { TransportError(.tooLong(limit: limit), url: url) }
}
