package import HTTP
package import IPLD

/// Single objects: read, put, copied, removed, listed.
extension BucketClient {
  /// The condition of a write.
  package enum Condition: Equatable, Sendable {
    /// Nothing.
    case none
    /// There is no object yet.
    case isAbsent
    /// The object is the one with this tag.
    case isTagged(String)

    var fields: [(name: String, value: String)] {
      switch self {
      case .none: []
      case .isAbsent: [("If-None-Match", "*")]
      case .isTagged(let tag): [("If-Match", tag)]
      }
    }
  }

  /// Requests an object or a part of it.
  ///
  /// - Parameters:
  ///   - key: Its key.
  ///   - range: The part, as the field `Range` names it, such as `bytes=0-99`; nil for all of it.
  ///   - tag: The expected content; nil for any.
  ///   - receive: Reads the answer. It has to check which part that is.
  /// - Throws: ``StoreError``; `TransportError`; what `receive` throws.
  /// - Returns: What `receive` returns.
  package func object<Value>(
    _ key: String, range: String?, tag: String?,
    receive: (HTTPResponse) async throws -> Value
  ) async throws -> Value {
    var call = Call(.get, key)
    if let range { call.fields.append(("Range", range)) }
    if let tag { call.fields.append(("If-Match", tag)) }
    call.asksForPart = range != nil
    return try await send(call, receive: receive)
  }

  /// Puts an object.
  ///
  /// - Parameters:
  ///   - body: What it holds.
  ///   - digest: The digest of that.
  ///   - key: Its key.
  ///   - condition: On what that depends.
  /// - Throws: ``StoreError``; `TransportError`.
  /// - Returns: The tag of the new object; nil if the store did not say.
  @discardableResult
  package func put(
    _ body: RequestBody, digest: SHA256Digest, at key: String, if condition: Condition = .none
  ) async throws -> String? {
    var call = Call(.put, key)
    call.fields = [("Content-Type", Self.contentType)] + condition.fields
    (call.body, call.digest) = (body, digest)
    return try await send(call).0["etag"]
  }

  /// The media type of archives.
  static let contentType = "application/zstd"

  /// Removes an object; it is not an error if there is none.
  ///
  /// - Throws: ``StoreError``; `TransportError`.
  package func remove(_ key: String) async throws {
    do {
      _ = try await send(Call(.delete, key))
    } catch let error as StoreError where error.kind == .noSuchObject {
      // It is gone already.
    }
  }

  /// The keys of objects that begin with some text, a page at a time, in their order.
  ///
  /// - Parameters:
  ///   - prefix: How the keys begin.
  ///   - page: Called with each page.
  /// - Throws: ``StoreError``; `TransportError`.
  package func list(_ prefix: String, page: ([String]) -> Void) async throws {
    try await listVersions(prefix) { page($0.map(\.key)) }
  }

  /// The same, each key with what identifies its content.
  package func listVersions(
    _ prefix: String, page: ([(key: String, version: String)]) -> Void
  ) async throws {
    try await forEachPage(
      of: "ListBucketResult", [("list-type", "2"), ("prefix", prefix)],
      next: ["continuation-token": "NextContinuationToken"]
    ) { answer in
      page(
        answer.all("Contents").compactMap { object in
          let version = ["ETag", "Size", "LastModified"].compactMap { object[$0]?.text }
          return object["Key"].map { ($0.text, version.joined(separator: " ")) }
        })
    }
  }

  /// Asks for a list of the bucket, page by page.
  ///
  /// - Parameters:
  ///   - name: What answers are called.
  ///   - query: What is requested.
  ///   - marks: The field that names the next page in a query, and the one that gives it in an
  ///     answer.
  ///   - body: Called with each answer.
  func forEachPage(
    of name: String, _ query: [(name: String, value: String)],
    next marks: KeyValuePairs<String, String>, _ body: (XMLElement) -> Void
  ) async throws {
    var place: [(name: String, value: String)] = []
    while true {
      var call = Call(.get, nil)
      call.query = query + place
      guard let answer = XMLElement(try await send(call).1), answer.name == name else {
        throw malformed("the list (\(name)) cannot be read")
      }
      body(answer)
      let next = marks.compactMap { query, element in
        answer[element].map { (name: query, value: $0.text) }
      }
      guard answer["IsTruncated"]?.text == "true", next.count == marks.count else { return }
      guard !next.elementsEqual(place, by: ==) else {
        throw malformed("the list (\(name)) is cut off, and does not name its next page")
      }
      place = next
    }
  }
}
