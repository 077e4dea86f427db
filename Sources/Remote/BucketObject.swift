internal import Archive
internal import HTTP
internal import IPLD
internal import ObjectStore
internal import Synchronization

/// An object in a bucket, to be read, extended or replaced.
///
/// An object cannot be appended to. But the store can make a new one of parts of the old and of
/// parts that are sent; when the new one is complete, it replaces the old one atomically, if that
/// is still the expected one.
///
/// 1. A reader of the key sees the old object or the new one, whenever this is interrupted.
/// 2. Nothing is replaced that another writer has put there in the meantime, unless the user has
///    said that there is none (``isExclusive``).
/// 3. The uploads of an interrupted writer on this machine are aborted by the next one
///    (``UploadLock``).
struct BucketObject: RangeReader {
  /// What the new object holds.
  struct Content: Sendable {
    /// What begins with its bytes.
    let file: MappedFile
    /// How many bytes it has.
    let count: UInt64
    /// An object of the bucket that begins as the new one does, and for how many bytes.
    var kept: (key: String, tag: String, count: UInt64)?
    /// Called with the offset from which bytes are read.
    var observer: @Sendable (UInt64) -> Void = { _ in }

    private func read(_ offset: UInt64, _ count: Int) throws -> [UInt8] {
      observer(offset)
      return try file.read(offset, count)
    }

    /// A part of it as it is sent, and its digest.
    fileprivate func part(_ range: Range<UInt64>) throws -> (RequestBody, SHA256Digest) {
      var hash = SHA256()
      for start in stride(from: range.lowerBound, to: range.upperBound, by: 1 << 20) {
        let bytes = try read(start, Int(min(1 << 20, range.upperBound - start)))
        hash.update(bytes.span)
      }
      let body = RequestBody(byteCount: UInt64(range.count)) { offset, count in
        try read(range.lowerBound + offset, count)
      }
      return (body, hash.finish())
    }

    /// Has what is kept sent, too; it is fetched first, for reading must not wait for what itself
    /// is transferred.
    fileprivate mutating func sendAll() async throws {
      try await onOwnQueue { [file] in
        file.willReadAll()
        try file.checkFetched()
      }
      kept = nil
    }
  }

  let client: BucketClient
  let key: String
  /// Whether nothing else writes there, so that conditional writes are not needed.
  var isExclusive = false
  /// Records the work that is begun in the store, so that the next writer finds it.
  var mark: UploadLock?

  var name: String { "\(BucketAddress(bucket: client.bucket, key: key))" }
  var isPutWhole: Bool { true }

  func get<Value>(
    _ range: String?, tag: String?, receive: (HTTPResponse) async throws -> Value
  ) async throws -> Value {
    try await FetchFailure.telling {
      try await client.object(key, range: range, tag: tag, receive: receive)
    }
  }

  /// Up to this length an object is put at once.
  private static let largestPut: UInt64 = 16 << 20
  /// The minimum length of the parts that are sent.
  private static let partLength: UInt64 = 16 << 20
  /// How many parts are sent at a time.
  private static let parallelParts = 4
  /// How many times at most an upload that something else aborted is started.
  private static let maximumUploads = 3

  /// How many bytes were sent, and what names the new object, if the store said.
  typealias Written = (sent: UInt64, tag: String?)

  /// Puts the new object in the place of the old.
  ///
  /// - Parameters:
  ///   - tag: what names the existing object; nil for none.
  ///   - content: what the new one holds.
  /// - Throws: ``StoreError`` of the kind `conditionFailed` if another writer was faster, of the
  ///   kind `noSuchUpload` if its uploads were given up by something else again and again, of the
  ///   kind `unconfirmed` if the store calls a write done that it has not done;
  ///   `TransportError`; what reading the content throws.
  func replace(_ tag: String?, by content: Content) async throws -> Written {
    let condition: BucketClient.Condition =
      isExclusive ? .none : tag.map { .isTagged($0) } ?? .isAbsent
    var content = content
    if let kept = content.kept, kept.count < BucketClient.leastPart {
      try await content.sendAll()
    }
    var begun = 0
    while true {
      do {
        begun += 1
        return try await write(content, condition)
      } catch let error as StoreError where error.kind == .cannotCopy && content.kept != nil {
        try await content.sendAll()
      } catch let error as StoreError
        where [.conditionFailed, .noSuchUpload, .unconfirmed].contains(error.kind)
      {
        // The answer to a write that was done may have been lost, and the write sent again, or the
        // answer says nothing.
        if let found = try await RemoteObject.find(self), found.count == content.count,
          found.ending == (try content.file.ending(at: content.count))
        {
          return (sent: content.count - (content.kept?.count ?? 0), tag: found.tag)
        }
        guard error.kind == .noSuchUpload, begun < Self.maximumUploads else { throw error }
      }
    }
  }

  private func write(_ content: Content, _ condition: BucketClient.Condition) async throws
    -> Written
  {
    guard content.kept == nil, content.count <= Self.largestPut else {
      return try await upload(content, condition)
    }
    let (body, digest) = try content.part(0..<content.count)
    let tag = try await client.put(body, digest: digest, at: key, if: condition)
    return (sent: content.count, tag: tag)
  }

  // MARK: Parts

  private func upload(_ content: Content, _ condition: BucketClient.Condition) async throws
    -> Written
  {
    // The answer is waited for even if the task is cancelled: it alone tells the upload's name.
    let upload = try await finishing { [client, key] in try await client.beginUpload(of: key) }
    return try await ending(.init(kind: .upload, key: key, id: upload.id)) {
      try Task.checkCancellation()
      let parts = Mutex<[BucketClient.Part]>([])
      let ranges = Array(Self.parts(content).enumerated())
      try await forEachConcurrently(ranges, atATime: Self.parallelParts) { number, range in
        let part: BucketClient.Part
        if let kept = content.kept, range.upperBound <= kept.count {
          part = try await client.copy(
            kept.key, tag: kept.tag, range, asPart: number + 1, of: upload)
        } else {
          let (body, digest) = try content.part(range)
          part = try await client.send(body, digest: digest, asPart: number + 1, of: upload)
        }
        parts.withLock { $0.append(part) }
      }
      let tag = try await client.complete(upload, parts.withLock { $0 }, if: condition)
      return (sent: content.count - (content.kept?.count ?? 0), tag: tag)
    }
  }

  /// The parts of a new object: those that the store has, of 5 GiB at most, and those that are
  /// sent.
  private static func parts(_ content: Content) -> [Range<UInt64>] {
    let kept = content.kept?.count ?? 0
    // Equal parts, so that none is shorter than the store allows.
    let copies = (kept + BucketClient.largestPart - 1) / BucketClient.largestPart
    let rest = content.count - kept
    let room = UInt64(BucketClient.maximumParts) - copies
    let length = max(partLength, (rest + room - 1) / room)
    return (0..<copies).map { kept * $0 / copies..<kept * ($0 + 1) / copies }
      + stride(from: kept, to: content.count, by: Int(length)).map {
        $0..<min(content.count, $0 + length)
      }
  }
}
