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
      of: ("ListObjectsV2", "ListBucketResult", "Contents"),
      [("list-type", "2"), ("prefix", prefix)],
      next: [("continuation-token", "NextContinuationToken")]
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
  ///   - list: What is asked for, by Amazon's name of it, and what answers and their entries are
  ///     called.
  ///   - query: What is requested.
  ///   - marks: The fields that name the next page in a query, each with the one that gives it in
  ///     an answer.
  ///   - body: Called with each answer.
  /// - Throws: `BrokenList` if the list goes round; ``StoreError``; `TransportError`.
  func forEachPage(
    of list: (call: String, answer: String, entry: String),
    _ query: [(name: String, value: String)], next marks: [(query: String, answer: String)],
    _ body: (XMLElement) -> Void
  ) async throws {
    let pages = Pages(of: list.call, at: "\(endpoint.origin)\(endpoint.prefix)", limit: .max) {
      [self] cursor in
      var call = Call(.get, nil)
      let place = cursor?.split(separator: Self.betweenMarks, omittingEmptySubsequences: false)
      call.query = query + zip(marks, place ?? []).map { ($0.query, String($1)) }
      guard let answer = XMLElement(try await send(call).1), answer.name == list.answer else {
        throw malformed("the list (\(list.answer)) cannot be read")
      }
      let next = marks.compactMap { answer[$0.answer]?.text }
      let isLast = answer["IsTruncated"]?.text != "true"
      guard isLast || next.count == marks.count else {
        throw malformed("the list (\(list.answer)) is cut off, and does not name its next page")
      }
      let entries = answer.all(list.entry).map { [$0["Key"]?.text, $0["UploadId"]?.text] }
      let following = isLast ? nil : next.joined(separator: String(Self.betweenMarks))
      return (answer, PagePlace(entries, cursor: following))
    }
    for try await page in pages { body(page) }
  }

  /// What no mark has in it: no text in XML has.
  private static let betweenMarks: Character = "\u{0}"
}
