/// Checks a CAR of version 1 while it arrives: every section's length and CID, and every block
/// against its CID.
///
/// Bytes are pushed in as they come; no more than one section and what arrived with it is held.
/// What the blocks mean is not looked at.
///
/// ```swift
/// var checker = CARStreamChecker()
/// for chunk in chunks { try checker.take(chunk) }
/// try checker.finish()
/// ```
package struct CARStreamChecker: Sendable {
  /// The header, once it has arrived.
  package private(set) var header: CARHeader?
  /// How many sections have arrived whole.
  package private(set) var sectionCount = 0
  /// How many bytes have arrived.
  package private(set) var byteCount = 0

  private let limits: CARLimits
  /// What has arrived and is not a whole section yet.
  private var rest: [UInt8] = []
  /// How many bytes it takes before another look at ``rest`` is worth it: a section that arrives in
  /// many pieces is not parsed for each.
  private var neededCount = 1

  /// A checker of a CAR of which nothing has arrived.
  package init(limits: CARLimits = .streaming) { self.limits = limits }

  /// Takes the next bytes.
  ///
  /// - Parameters:
  ///   - bytes: what has arrived.
  ///   - found: called with the CID of each section that is whole and checked.
  /// - Throws: ``CARError`` for a malformed header or section, or a block that is not the one its
  ///   CID names, with its place in the CAR.
  package mutating func take(
    _ bytes: Span<UInt8>, found: (CID) -> Void = { _ in }
  ) throws(CARError) {
    byteCount += bytes.count
    guard rest.isEmpty else {
      rest.append(contentsOf: bytes)
      guard rest.count >= neededCount else { return }
      let gathered = rest
      let used = try check(gathered.span, found)
      rest.removeFirst(used)
      return
    }
    let used = try check(bytes, found)
    rest.append(contentsOf: bytes.extracting(used..<bytes.count))
  }

  /// Makes sure that the CAR has come to its end.
  ///
  /// - Throws: ``CARError`` if it ends within its header or a section.
  package func finish() throws(CARError) {
    guard header != nil else { throw CARError(.truncatedHeader, offset: byteCount) }
    guard rest.isEmpty else { throw CARError(.truncatedSection, offset: byteCount - rest.count) }
  }

  /// Checks what is whole; returns how many bytes that is.
  private mutating func check(
    _ bytes: Span<UInt8>, _ found: (CID) -> Void
  ) throws(CARError) -> Int {
    let start = byteCount - bytes.count
    var used = 0
    neededCount = 1
    if header == nil {
      do throws(CARError) {
        let header = try CARHeader(bytes, limits: limits)
        self.header = header
        used = header.length
      } catch {
        guard error.reason == .truncatedHeader else { throw error }
        return 0
      }
    }
    var cursor = CARCursor(payload: used..<bytes.count, limits: limits)
    do throws(CARError) {
      while let (section, cid) = try cursor.next(in: bytes) {
        guard section.bodyRange.count <= RepositoryLimits.block else {
          throw CARError(.blockTooLong(cid, length: section.bodyRange.count), offset: section.start)
        }
        guard cid.verify(bytes.extracting(section.bodyRange)) != .mismatch else {
          throw CARError(.contentMismatch(cid), offset: section.start)
        }
        sectionCount += 1
        found(cid)
      }
    } catch {
      guard error.reason == .truncatedSection else {
        throw CARError(error.reason, offset: start + error.offset)
      }
      var body = cursor.offset
      if case .value(let length) = Varint.read(bytes, at: &body) {
        neededCount = body - cursor.offset + Int(length)
      }
    }
    return cursor.offset
  }
}
