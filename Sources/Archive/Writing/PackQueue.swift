internal import IPLD

/// The packs that are not in the file yet: one that takes sections, and up to eight that wait to be compressed together.
///
/// What it holds in memory is bounded: eight packs of 1 MiB and as many frames.
struct PackQueue {
  /// How many packs are compressed at a time.
  static let capacity = 8

  private let level: Int
  private let workers: Int
  private let encoders: EncoderPool
  private var open: Pack
  private var closed: [Pack] = []
  private var spare: [Pack] = []

  init(firstOrdinal: UInt64, options: ArchiveOptions) {
    level = options.level
    workers = options.workers
    encoders = EncoderPool()
    open = Pack(firstOrdinal: firstOrdinal)
  }

  var isEmpty: Bool { open.isEmpty && closed.isEmpty }
  var isFull: Bool { closed.count >= Self.capacity }

  /// The pack that holds this section.
  func pack(of ordinal: UInt64) -> Pack? {
    if open.contains(ordinal) { return open }
    return closed.first { $0.contains(ordinal) }
  }

  /// Takes a section, in the pack it belongs to.
  mutating func append(_ cid: [UInt8], _ body: Span<UInt8>, ordinal: UInt64) {
    let length = Varint.maximumLength + cid.count + body.count
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

  /// Compresses the packs that have been ended and appends their frames, in order.
  mutating func drain(into log: inout FrameLog) throws {
    guard !closed.isEmpty else { return }
    let (packs, encoders, level) = (closed, encoders, level)
    Parallel.perform(packs.count, workers: workers) { index in
      encoders.with { packs[index].encode(with: $0, level: level) }
    }
    for pack in packs {
      try log.append(
        pack.stored.span, contentSize: pack.content.count, firstOrdinal: pack.firstOrdinal)
    }
    spare.append(contentsOf: packs)
    if spare.count > Self.capacity { spare.removeLast(spare.count - Self.capacity) }
    closed.removeAll(keepingCapacity: true)
  }
}
