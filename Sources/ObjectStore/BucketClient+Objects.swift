package import HTTP
package import IPLD

/// Single objects: read, put, copied, removed, listed.
extension BucketClient {
  /// What a store says of an object.
  package struct ObjectHead: Equatable, Sendable {
    /// How many bytes it has.
    package let size: UInt64
    /// What names this content of it, with its quotation marks.
    package let tag: String
  }

  /// On what a write depends.
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

  /// What a store says of an object; nil if there is none.
  ///
  /// - Throws: ``StoreError``; `TransportError`.
  package func head(of key: String) async throws -> ObjectHead? {
    do {
      let response = try await send(Call(.head, key)) { $0 }
      guard let size = response["content-length"].flatMap({ UInt64($0) }),
        let tag = response["etag"]
      else { throw malformed("neither a length nor a tag came with \(key)") }
      return ObjectHead(size: size, tag: tag)
    } catch let error as StoreError where error.kind == .noSuchObject {
      return nil
    }
  }

  /// Asks for an object or a part of it.
  ///
  /// - Parameters:
  ///   - key: Its key.
  ///   - range: The part, as the field `Range` names it, such as `bytes=0-99`; nil for all of it.
  ///   - tag: The content that is meant; nil for any.
  ///   - receive: Reads the answer. What part it brings is for it to see.
  /// - Throws: ``StoreError``; `TransportError`; what `receive` throws.
  /// - Returns: What `receive` answers.
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

  /// Copies an object within the bucket, on the store's side; up to 5 GiB.
  ///
  /// - Parameters:
  ///   - source: The key of the object.
  ///   - tag: The content that is meant.
  ///   - key: Where to.
  /// - Throws: ``StoreError``; `TransportError`.
  package func copy(_ source: String, tag: String, to key: String) async throws {
    var call = Call(.put, key)
    call.fields = [
      ("x-amz-copy-source", copySource(source)), ("x-amz-copy-source-if-match", tag),
    ]
    call.patience = Self.longWork
    let (_, body) = try await send(call)
    try refuseErrorIn(body, of: key)
  }

  /// For how many seconds a store may be at work without a word.
  static let longWork = 600

  func copySource(_ key: String) -> String {
    RequestSigner.escaped("/\(bucket)/\(key)", isPath: true)
  }

  /// Removes an object; that there is none is as good.
  ///
  /// - Throws: ``StoreError``; `TransportError`.
  package func remove(_ key: String) async throws {
    do {
      _ = try await send(Call(.delete, key))
    } catch let error as StoreError where error.kind == .noSuchObject {
      // It is gone already.
    }
  }

  /// An object in a list.
  package struct ListedObject: Equatable, Sendable {
    /// Its key.
    package let key: String
    /// How many bytes it has.
    package let size: UInt64
    /// What names its content.
    package let tag: String
  }

  /// The objects whose keys begin with some text, a page at a time, in the order of their keys.
  ///
  /// - Parameters:
  ///   - prefix: How the keys begin.
  ///   - page: Called with each page.
  /// - Throws: ``StoreError``; `TransportError`; what `page` throws.
  package func list(_ prefix: String, page: ([ListedObject]) async throws -> Void) async throws {
    var token: String?
    repeat {
      var call = Call(.get, nil)
      call.query = [("list-type", "2"), ("prefix", prefix)]
      if let token { call.query.append(("continuation-token", token)) }
      let (_, body) = try await send(call)
      guard let answer = XMLElement(body), answer.name == "ListBucketResult" else {
        throw malformed("the list of objects cannot be read")
      }
      try await page(
        answer.all("Contents").compactMap { entry in
          guard let key = entry["Key"]?.text, let size = UInt64(entry["Size"]?.text ?? "") else {
            return nil
          }
          return ListedObject(key: key, size: size, tag: entry["ETag"]?.text ?? "")
        })
      let next = answer["IsTruncated"]?.text == "true" ? answer["NextContinuationToken"]?.text : nil
      guard next == nil || next != token else {
        throw malformed("the list of objects does not go on")
      }
      token = next
    } while token != nil
  }

  /// An error of success's status: stores answer 200 before they are done, and may fail then.
  func refuseErrorIn(_ body: [UInt8], of key: String) throws {
    guard let answer = XMLElement(body), answer.name == "Error" else { return }
    let code = answer["Code"]?.text
    let kind: StoreError.Kind =
      switch code {
      case "PreconditionFailed", "ConditionalRequestConflict": .conditionFailed
      case "InternalError", "SlowDown", "ServiceUnavailable": .unavailable
      default: .refused
      }
    throw StoreError(
      kind,
      "\(BucketAddress.scheme)\(bucket)/\(key): \(code ?? "an error"), said after the answer had begun",
      status: 200, code: code)
  }

  func malformed(_ what: String) -> StoreError {
    StoreError(.malformed, "\(BucketAddress.scheme)\(bucket): \(what)")
  }
}
