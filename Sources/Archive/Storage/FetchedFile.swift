internal import LibC
internal import Synchronization
internal import SystemPackage

/// A remote file whose ranges are fetched before they are read.
///
/// What was fetched lies in a ``FetchScratch``, at the place that it has in the real file, and that
/// is mapped. A reader says first what it needs (`need(_:)`), so that it comes in few requests.
///
/// 1. What was needed and is here holds the bytes of the source, or nothing can be concluded from
///    it: then ``failure`` says why it could not be fetched, and all of the file reads as zeros.
/// 2. No more than its capacity are kept, unless all were requested; what was needed longest ago
///    goes first, and nothing that was needed since the oldest reader began.
/// 3. After a failure nothing is fetched any more.
/// 4. What was appended locally (`append(_:at:)`) is never released, and never requested.
package final class FetchedFile: Sendable {
  /// How many bytes the source has.
  private let sourceCount: Int
  /// How many bytes are kept.
  private let capacity: Int
  /// How many bytes are kept by default.
  package static let usualCapacity = 64 << 20
  /// Pages in a group; groups come and go, so that few numbers tell what is there.
  fileprivate static let pagesPerGroup = 64

  let source: any ByteSource
  private let scratch: any FetchScratch
  private let pageSize: Int
  /// Gaps up to this length are fetched with what lies on both sides of them.
  private let widestGap: Int
  private let table: Mutex<Table>
  /// One thread fetches at a time; the others then find the pages.
  private let turn = Mutex(())

  /// The pages that have been fetched.
  fileprivate struct Table {
    var groups: [Int: Group] = [:]
    var windows: [Window] = []
    /// How many pages have been fetched.
    var held = 0
    /// How many times something was needed.
    var clock = 0
    var keepsAll = false
    var failure: (any Error)?
    /// When each of the current readers began.
    var readers: [Int] = []
    /// How many bytes the file has.
    var count: Int
    /// The first page that holds bytes that were appended here; beyond all pages if none does.
    var firstOwnPage = Int.max

    func isPresent(_ page: Int) -> Bool {
      let (number, place) = page.quotientAndRemainder(dividingBy: FetchedFile.pagesPerGroup)
      return (groups[number]?.present ?? 0) >> UInt64(place) & 1 == 1
    }

    /// Records that a group is needed now.
    mutating func use(_ number: Int, isKept: Bool = false) {
      let group = groups[number, default: (0, 0)]
      groups[number] = (group.present, isKept ? .max : max(group.lastUse, clock))
    }

    /// The pages that are there, ascending.
    var presentPages: [Int] {
      groups.keys.sorted().flatMap { number in
        let present = groups[number]?.present ?? 0
        return (0..<FetchedFile.pagesPerGroup).filter { present >> UInt64($0) & 1 == 1 }.map {
          number * FetchedFile.pagesPerGroup + $0
        }
      }
    }
  }

  /// A one for each page that is there; and when one was needed last, `Int.max` if it is kept.
  fileprivate typealias Group = (present: UInt64, lastUse: Int)

  /// A mapping of what was fetched.
  fileprivate typealias Window = (start: UInt, length: Int)

  /// A file of which nothing has been fetched yet.
  ///
  /// - Parameters:
  ///   - source: Where the bytes come from.
  ///   - count: How many there are.
  ///   - scratch: Where they lie; nothing is in it yet.
  ///   - capacity: How many bytes are kept.
  /// - Throws: ``FetchFailure`` if the scratch cannot be made as long.
  package init(
    _ source: any ByteSource, count: Int, scratch: any FetchScratch,
    capacity: Int = FetchedFile.usualCapacity
  ) throws {
    (self.source, sourceCount, self.scratch) = (source, count, scratch)
    self.capacity = capacity
    table = Mutex(Table(count: count))
    // What lies in memory may be read while more is fetched, and holds anything until it is there.
    widestGap = scratch.reloadsPages ? 64 << 10 : 0
    pageSize = max(16 << 10, Int(sysconf(CInt(_SC_PAGESIZE))))
    try Self.attempt("make a temporary file of \(count) bytes") {
      try scratch.lengthen(to: count)
    }
  }

  /// Adds to a system call's error what was being done.
  private static func attempt(_ purpose: String, _ body: () throws -> Void) throws {
    do {
      try body()
    } catch let error as Errno {
      throw FetchFailure(.noRoom, "could not \(purpose): \(error)")
    }
  }

  /// What is wrong with how the source stores its bytes.
  ///
  /// - Throws: ``FetchFailure``.
  func flaws() throws -> [ArchiveError] { try source.flaws() }

  /// How many bytes the file has.
  package var count: Int { table.withLock { $0.count } }

  /// Why something could not be fetched; nil as long as every fetch succeeded.
  package var failure: (any Error)? { table.withLock { $0.failure } }

  /// Stores bytes that are already known.
  ///
  /// - Throws: ``FetchFailure`` if there is no room for them.
  package func keep(_ bytes: [UInt8], at offset: Int) throws {
    try write(bytes.span, at: UInt64(offset))
    let end = offset + bytes.count
    // A page that begins before, or ends after, is not all there.
    let first = (offset + pageSize - 1) / pageSize
    markPresent(first..<max(first, end == sourceCount ? pageCount : end / pageSize))
  }

  /// Marks all of it as fetched: it is in the scratch already.
  package func keepAll() {
    table.withLock { $0.keepsAll = true }
    markPresent(0..<pageCount)
  }

  private var pageCount: Int { (count + pageSize - 1) / pageSize }

  /// Fetches the missing parts of some ranges, joined where they lie close together.
  ///
  /// - Parameters:
  ///   - ranges: The blob.
  ///   - isKept: Whether it is never released.
  package func need(_ ranges: [Range<Int>], isKept: Bool = false) {
    turn.withLock { _ in
      let missing = missing(in: ranges, isKept: isKept)
      guard !missing.isEmpty else { return }
      do {
        let ranges = missing.map { bytes(of: $0) }
        if let memory = unsafe scratch.memory(for: ranges) {
          try unsafe source.fetch(ranges, into: memory)
        } else {
          try source.fetch(ranges) { [self] offset, bytes in try write(bytes.span, at: offset) }
        }
        for run in missing { markPresent(run) }
      } catch let error where error is FetchFailure || error is CancellationError {
        fail(error)
      } catch {
        fail(FetchFailure(.noRoom, "\(error)"))
      }
    }
  }

  /// Begins a read; returns its start, for `endReading`.
  func beginReading() -> Int {
    table.withLock { table in
      table.readers.append(table.clock)
      return table.clock
    }
  }

  /// Ends the read that began at `start`: what it needed may be released.
  func endReading(_ start: Int) {
    table.withLock { table in
      if let place = table.readers.firstIndex(of: start) { table.readers.remove(at: place) }
    }
  }

  /// Whether some of these bytes have not been fetched.
  package func lacks(_ range: Range<Int>) -> Bool {
    table.withLock { table in
      let range = range.clamped(to: 0..<table.count)
      var page = range.lowerBound / pageSize
      while page * pageSize < range.upperBound {
        if !table.isPresent(page) { return true }
        page += 1
      }
      return false
    }
  }

  /// Fetches everything that is missing, and keeps it.
  package func needAll() {
    table.withLock { $0.keepsAll = true }
    need([0..<count])
  }

  private func bytes(of pages: Range<Int>) -> Range<UInt64> {
    UInt64(pages.lowerBound * pageSize)..<UInt64(min(sourceCount, pages.upperBound * pageSize))
  }

  /// The runs of pages that have not been fetched, ascending.
  private func missing(in ranges: [Range<Int>], isKept: Bool) -> [Range<Int>] {
    var runs: [Range<Int>] = []
    table.withLock { table in
      guard table.failure == nil else { return }
      table.clock += 1
      let sorted = ranges.map { $0.clamped(to: 0..<table.count) }.filter { !$0.isEmpty }
        .sorted { $0.lowerBound < $1.lowerBound }
      for range in sorted {
        var page = max(range.lowerBound / pageSize, runs.last?.upperBound ?? 0)
        while page * pageSize < range.upperBound {
          table.use(page / Self.pagesPerGroup, isKept: isKept)
          if !table.isPresent(page) { runs.extend(by: page, across: widestGap / pageSize) }
          page += 1
        }
      }
    }
    return runs
  }

  private func write(_ bytes: Span<UInt8>, at offset: UInt64) throws {
    try Self.attempt("store the fetched bytes in a temporary file") {
      try scratch.write(bytes, at: Int(offset))
    }
  }

  private func markPresent(_ pages: Range<Int>) {
    guard !pages.isEmpty else { return }
    table.withLock { table in
      for page in pages {
        let (number, place) = page.quotientAndRemainder(dividingBy: Self.pagesPerGroup)
        let bit: UInt64 = 1 << UInt64(place)
        if table.groups[number, default: (0, 0)].present & bit == 0 {
          table.groups[number, default: (0, 0)].present |= bit
          if page < table.firstOwnPage { table.held += 1 }
        }
        table.use(number)
      }
      evict(&table)
    }
  }

  /// Releases what was needed longest ago, if there is too much.
  private func evict(_ table: inout Table) {
    guard !table.keepsAll, table.failure == nil, table.held * pageSize > capacity else { return }
    let limit = min(table.clock, table.readers.min().map { $0 + 1 } ?? .max)
    let oldest = table.groups.sorted { $0.value.lastUse < $1.value.lastUse }
    for (number, group) in oldest where group.lastUse < limit {
      guard table.held * pageSize > capacity / 4 * 3 else { return }
      let end = min((table.count + pageSize - 1) / pageSize, (number + 1) * Self.pagesPerGroup)
      guard end <= table.firstOwnPage else { continue }
      let pages = number * Self.pagesPerGroup..<end
      let range = bytes(of: pages)
      scratch.drop(Int(range.lowerBound)..<Int(range.upperBound))
      table.held -= group.present.nonzeroBitCount
      table.groups[number] = nil
    }
  }

  /// Gives up: what is mapped reads as zeros, also where a scratch file has holes and there is no
  /// room for them, and none of it counts.
  private func fail(_ failure: any Error) {
    table.withLock { table in
      table.failure = table.failure ?? failure
      for window in table.windows {
        SystemCalls.mapZeros(over: window.start, length: window.length)
      }
    }
  }

  // MARK: Appending

  /// Writes bytes of the file's own, at its end or over some that were written so before; what the
  /// file had after them is cut off.
  ///
  /// - Parameters:
  ///   - bytes: What.
  ///   - offset: Where, not beyond the end.
  /// - Throws: ``FetchFailure`` if there is no room for them, or what the first page had before
  ///   could not be fetched.
  package func append(_ bytes: Span<UInt8>, at offset: Int) throws {
    try cut(to: offset)
    let end = offset + bytes.count
    try Self.attempt("write to a temporary file") {
      try scratch.lengthen(to: end)
      try scratch.write(bytes, at: offset)
    }
    table.withLock { $0.count = end }
    markPresent(offset / pageSize..<(end + pageSize - 1) / pageSize)
  }

  /// Truncates the file; from there on it has local bytes.
  ///
  /// - Throws: ``FetchFailure`` if the page on which it ends could not be fetched.
  package func cut(to end: Int) throws {
    let isInside = end % pageSize != 0
    if isInside { need([end - 1..<end]) }
    if let failure { throw failure }
    table.withLock { table in
      table.count = end
      guard end / pageSize < table.firstOwnPage else { return }
      let before = table.firstOwnPage
      table.firstOwnPage = end / pageSize
      let own = table.presentPages.count { table.firstOwnPage..<before ~= $0 }
      table.held -= own
    }
  }

  /// Takes what the scratch has after the source for the file's own: another process has written
  /// it.
  ///
  /// - Throws: as ``append(_:at:)`` does.
  package func adopt(upTo end: Int) throws {
    try cut(to: sourceCount)
    table.withLock { $0.count = end }
    markPresent(sourceCount / pageSize..<(end + pageSize - 1) / pageSize)
  }

  /// Returns when everything written so far would survive a loss of power.
  package func synchronize() throws {
    try Self.attempt("write to a temporary file") { try scratch.synchronize() }
  }

  // MARK: Mapping

  /// Maps the file as long as it is now; nil if it is empty.
  ///
  /// - Throws: ``FetchFailure`` if there is no room in the address space.
  func map() throws -> (address: UnsafeRawPointer?, length: Int) {
    try unsafe table.withLock { table in
      guard table.count > 0 else { return (nil, 0) }
      let address: UnsafeRawPointer
      do {
        unsafe address = try scratch.map(length: table.count)
      } catch let error as Errno {
        throw FetchFailure(.noRoom, "could not map \(table.count) bytes: \(error)")
      }
      let window: Window = (UInt(bitPattern: address), table.count)
      if table.failure != nil { SystemCalls.mapZeros(over: window.start, length: window.length) }
      table.windows.append(window)
      return unsafe (address, table.count)
    }
  }

  /// Whether pages of a mapping that are released come back with the same bytes.
  var reloadsPages: Bool { scratch.reloadsPages }

  /// Removes a mapping.
  func unmap(_ address: UnsafeRawPointer, length: Int) {
    table.withLock { $0.windows.removeAll { $0.start == UInt(bitPattern: address) } }
    unsafe scratch.unmap(address, length: length)
  }
}
