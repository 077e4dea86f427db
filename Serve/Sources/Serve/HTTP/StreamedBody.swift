import Archive
import IPLD
import NIOCore
import NIOHTTP1
import Synchronization

/// What all answers that are being sent may hold in memory together.
///
/// Each holds one piece at a time. Where there are many, pieces are small.
final class SendBudget: Sendable {
  private static let total = 4 << 20
  private static let smallest = 16 << 10
  private static let largest = 512 << 10

  /// How many answers are being sent.
  fileprivate let count = Atomic<Int>(0)
  /// What reads the pieces.
  private let threads: WorkThreads

  init(_ threads: WorkThreads) { self.threads = threads }

  /// After how many bytes from mapped files their pages are released, because they count as memory,
  /// while few answers are sent, and while many are.
  private static let heldPages = (few: 32 << 20, many: 16 << 20)
  /// How many are few.
  private static let few = 64

  private let unreleased = Atomic<Int>(0)

  /// Notes that bytes of a mapped file have been read.
  func hasRead(_ count: Int, release: () -> Void) {
    let (_, sum) = unreleased.add(count, ordering: .relaxed)
    let isFew = self.count.load(ordering: .relaxed) <= Self.few
    guard sum >= (isFew ? Self.heldPages.few : Self.heldPages.many) else { return }
    unreleased.store(0, ordering: .relaxed)
    release()
  }

  /// How many bytes a piece may have now: a power of two, because buffers have such lengths.
  var pieceLength: Int {
    let share = Self.total / max(1, count.load(ordering: .relaxed))
    let power = 1 << (Int.bitWidth - 1 - max(1, share).leadingZeroBitCount)
    return max(Self.smallest, min(Self.largest, power))
  }
}

/// Which bytes of something are wanted (RFC 9110, section 14).
enum ByteRange: Equatable {
  /// All.
  case all
  /// These.
  case part(Range<UInt64>)
  /// None that there are.
  case unsatisfiable

  /// Reads the header `Range`.
  ///
  /// More than one range, and what is none, count as all, which is always allowed.
  init(_ header: String?, of length: UInt64) {
    guard let header, header.hasPrefix("bytes=") else {
      self = .all
      return
    }
    let parts = header.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2 else {
      self = .all
      return
    }
    let (first, last) = (parts[0], parts[1])
    func number(_ text: Substring) -> UInt64? {
      text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        ? UInt64(text) : nil
    }
    switch (number(first), number(last)) {
    case (nil, let suffix?) where first.isEmpty:
      self =
        suffix == 0 || length == 0
        ? .unsatisfiable : .part(length - min(suffix, length)..<length)
    case (let start?, nil) where last.isEmpty:
      self = start < length ? .part(start..<length) : .unsatisfiable
    case (let start?, let end?) where start <= end:
      self = start < length ? .part(start..<min(length, end.addingSaturated(1))) : .unsatisfiable
    default: self = .all
    }
  }
}

extension UInt64 {
  fileprivate func addingSaturated(_ other: UInt64) -> UInt64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}

extension Response {
  /// Something that can be read in parts.
  ///
  /// - Parameters:
  ///   - length: how many bytes it has.
  ///   - request: what was requested.
  ///   - headers: what is said of it; an ETag, a strong one, is compared with `If-Match`,
  ///     `If-None-Match` and `If-Range`.
  ///   - write: writes these bytes of it.
  static func ranged(
    _ length: UInt64, _ request: Request, _ headers: HTTPHeaders,
    _ write: @escaping @concurrent @Sendable (Range<UInt64>, BodyWriter) async throws -> Void
  ) -> Response {
    var headers = headers
    headers[.acceptRanges] = "bytes"
    func names(_ list: String, isWeak: Bool) -> Bool {
      list == "*"
        || list.split(separator: ",").contains {
          var text = $0.drop { $0 == " " }
          if isWeak, text.hasPrefix("W/") { text = text.dropFirst(2) }
          return text.prefix { $0 != " " } == headers[.eTag] ?? ""
        }
    }
    let unmet: HTTPResponseStatus? =
      if let wanted = request.headers[.ifMatch], !names(wanted, isWeak: false) {
        .preconditionFailed
      } else if let known = request.headers[.ifNoneMatch], names(known, isWeak: true) {
        .notModified
      } else {
        nil
      }
    if let unmet {
      headers[.contentType] = nil
      return Response(status: unmet, headers: headers)
    }
    var range = ByteRange(request.headers[.range], of: length)
    if let condition = request.headers[.ifRange], condition != headers[.eTag] { range = .all }
    switch range {
    case .unsatisfiable:
      headers[.contentRange] = "bytes */\(length)"
      headers[.contentType] = nil
      return Response(status: .rangeNotSatisfiable, headers: headers)
    case .all:
      return Response(
        status: .ok, headers: headers,
        body: .written(length: Int(length)) { try await write(0..<length, $0) })
    case .part(let part):
      headers[.contentRange] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(length)"
      return Response(
        status: .partialContent, headers: headers,
        body: .written(length: part.count) { try await write(part, $0) })
    }
  }
}

extension ByteBuffer {
  /// Appends bytes.
  mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBytes { unsafe _ = writeBytes($0) }
  }
}

/// Sending from what can be read at any place, on threads that may wait for a disk.
extension SendBudget {
  /// Sends bytes of a section's body.
  ///
  /// - Throws: `ArchiveError` if it is damaged, `FetchFailure` if the file was cut off, and then
  ///   the answer ends short.
  @concurrent func send(
    _ cid: CID, _ range: Range<UInt64>, of reader: ArchiveReader,
    to writer: BodyWriter
  ) async throws {
    try await withTaskExecutorPreference(threads) {
      guard var cursor = try reader.body(of: cid, from: range.lowerBound) else {
        throw ArchiveError(.damagedSection(cid))
      }
      try await send(Int(range.lowerBound)..<Int(range.upperBound), to: writer) { part, buffer in
        while buffer.readableBytes < part.count {
          let missing = part.count - buffer.readableBytes
          let given: Void? = try cursor.next(upTo: missing) { buffer.append($0) }
          guard given != nil else { throw ArchiveError(.damagedSection(cid)) }
        }
        // What could not be fetched is not what the archive holds.
        try reader.checkFetched()
        hasRead(part.count, release: reader.releasePages)
      }
    }
  }

  /// Sends bytes that are at hand, piece by piece.
  @concurrent func send(
    _ range: Range<Int>, to writer: BodyWriter,
    _ append: (Range<Int>, inout ByteBuffer) throws -> Void
  ) async throws {
    count.add(1, ordering: .relaxed)
    defer { count.subtract(1, ordering: .relaxed) }
    try await withTaskExecutorPreference(threads) {
      var place = range.lowerBound
      while place < range.upperBound {
        if place > range.lowerBound { try await writer.pause() }
        let end = min(range.upperBound, place + pieceLength)
        var buffer = ByteBufferAllocator().buffer(capacity: end - place)
        try append(place..<end, &buffer)
        place = end
        try await writer.write(buffer)
      }
    }
  }
}
