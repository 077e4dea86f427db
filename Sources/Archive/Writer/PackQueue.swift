internal import IPLD

/// The packs that are not in the file yet.
///
/// ```
/// open, takes sections ─► closed ─► compressed on other cores, meanwhile the next are filled ─► in
/// the file, in order
/// ```
///
/// What it holds in memory is bounded: nine packs of 1 MiB, and their frames.
struct PackQueue {
  /// How many packs it holds beside the open one.
  static let capacity = 8
  /// How many packs are compressed at a time.
  private static let batch = capacity / 2

  private let level: Int
  private let workers: Int
  private let encoders = Pool { FrameEncoder() }
  private var open: Pack
  private var closed: [Pack] = []
  /// Those that are being compressed.
  private var compressing: (packs: [Pack], work: SharedWork)?
  private var spare: [Pack] = []

  init(firstOrdinal: UInt64, options: ArchiveOptions) {
    level = options.level
    workers = options.workers
    open = Pack(firstOrdinal: firstOrdinal)
  }

  /// Whether ``advance(into:)`` is due.
  var isFull: Bool { closed.count >= Self.batch }

  /// The pack that holds this section.
  func pack(of ordinal: UInt64) -> Pack? {
    if open.contains(ordinal) { return open }
    return closed.first { $0.contains(ordinal) }
      ?? compressing?.packs.first { $0.contains(ordinal) }
  }

  /// Appends a section to the pack that it belongs to.
  mutating func append(_ cid: CID, _ body: Span<UInt8>, ordinal: UInt64) {
    let length = Varint.maximumLength + cid.byteCount + body.count
    if !open.hasRoom(for: length) { close(next: ordinal) }
    if open.isEmpty { open.reset(firstOrdinal: ordinal) }
    open.append(cid, body)
  }

  /// Ends the open pack; the next begins with the section `ordinal`.
  mutating func close(next ordinal: UInt64) {
    guard !open.isEmpty else { return }
    closed.append(open)
    open = spare.popLast() ?? Pack(firstOrdinal: ordinal)
    open.reset(firstOrdinal: ordinal)
  }

  /// Gives the newest section, if it is `ordinal` and in the open pack, a pack of its own.
  mutating func isolateLast(_ ordinal: UInt64) {
    guard open.contains(ordinal), open.contains(ordinal - min(ordinal, 1)), ordinal > 0,
      !open.contains(ordinal + 1)
    else { return }
    let last = open.splitLast()
    closed.append(open)
    open = last
  }

  /// Appends the frames of the packs that are being compressed, in order, and begins to compress
  /// those that have been ended.
  mutating func advance(into log: inout FrameLog) throws {
    if let (packs, work) = compressing {
      work.finish()
      for pack in packs {
        try log.append(
          pack.stored.span, contentSize: pack.content.count, firstOrdinal: pack.firstOrdinal)
      }
      spare.append(contentsOf: packs)
      if spare.count > Self.capacity { spare.removeLast(spare.count - Self.capacity) }
      compressing = nil
    }
    guard !closed.isEmpty else { return }
    let (packs, encoders, level) = (closed, encoders, level)
    let work = SharedWork(packs.count, helpers: workers - 1) { index in
      encoders.with { packs[index].encode(with: $0, level: level) }
    }
    compressing = (packs, work)
    closed.removeAll(keepingCapacity: true)
  }

  /// Compresses the packs that have been ended and appends their frames, in order.
  mutating func drain(into log: inout FrameLog) throws {
    while compressing != nil || !closed.isEmpty { try advance(into: &log) }
  }
}
