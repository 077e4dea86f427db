internal import Age
internal import Archive
internal import IPLD
internal import Synchronization
internal import SystemPackage

/// The storage of an archive that is sealed on its way into another storage.
///
/// 1. What was written is in the file as soon as ``synchronize()`` has returned, in pieces that
///    hold up to ``pieceLength`` bytes each.
/// 2. A piece is encrypted under a key and a nonce that were never used: also where it takes the
///    place of another.
/// 3. A piece that is written over another was written after all of them before, so that one of the
///    two is whole at every moment.
/// 4. When a table is written, the pieces that it describes are on the medium. (In the first
///    version, up to some that lie right before it: the next writer looks at these.)
/// 5. No plaintext is written anywhere but into memory.
/// 6. Where parity is kept, it stands between the pieces of a generation and their table, and all
///    before it is on the medium when the table is written. Parity of what was written over since
///    is made again with the next table.
/// 7. A key frame lies among the pieces before the first table, and another before the first one in
///    a file that is many times as long.
/// 8. A piece may be on its way into the file on another thread while the next one is filled; what
///    asks the file for anything waits for it, and learns whether it arrived.
final class SealedStorage: ArchiveStorage {
  /// How many bytes of the archive a piece holds at most.
  static let pieceLength = 4 << 20
  /// How many bytes of pieces may not be on the medium when their table is written, in the first
  /// version.
  static let mostUnsynced = 64 << 10
  /// How long a file is at least that has a second key frame among its pieces, and how many times as
  /// long as what lies before the first one.
  private static let (distantLength, distantRatio) = (16 << 20, 16)

  let file: any ArchiveStorage
  let identity: AgeIdentity
  let state: Mutex<State>

  struct State {
    var layout: SealedLayout
    /// The key frames, as copies of them are written.
    var slots: KeySlots
    /// The bytes that are in no piece yet.
    var rest: [UInt8] = []
    /// The last of the pieces, while it is sealed and written.
    var arriving: Meanwhile<Result<Void, any Error>>?
    /// How many bytes may not be on the medium.
    var unsyncedCount = 0
    /// Whether nothing lies after the last whole frame.
    var isClean = false
    /// A piece whose copy is in the file, and which has to be written into its place before
    /// anything else is.
    var unfinished: (number: Int, piece: Piece, bytes: [UInt8])?
    /// The parity of the frames; nil if none is kept.
    var parity: Parity?
    /// Reads the pieces, as long as they are unchanged, and caches what it reads.
    var map: MappedFile?

    var count: Int { layout.plainCount + rest.count }
  }

  /// Parity of the frames of a file.
  struct Parity {
    /// How much there is of it.
    var percent: Int
    /// Where what it does not protect begins.
    var end = KeySlots.length
    /// Whether what it protects was written over.
    var isStale = false
  }

  /// Opens an existing sealed archive.
  ///
  /// - Throws: `ArchiveError` if another archive begins in the file; what the storage throws;
  ///   `AgeError`.
  init(_ file: any ArchiveStorage, _ identity: AgeIdentity, _ slots: KeySlots) throws {
    (self.file, self.identity) = (file, identity)
    var map = try file.map()
    var slots = slots
    var layout = try SealedLayout(map, identity)
    if let place = layout.furtherArchive {
      throw ArchiveError(.furtherArchive, offset: UInt64(place))
    }
    if let replacement = layout.replacement {
      let bytes = map.withBytes(reading: [replacement.frame]) { $0.array(replacement.frame) }
      try file.write(bytes.span, at: UInt64(replacement.target.lowerBound))
      try file.synchronize()
      try file.truncate(to: UInt64(max(layout.end, replacement.target.upperBound)))
      map = try file.map()
      layout = try Self.layout(map, identity, replaced: replacement.target)
    }
    // An interrupted change of the keys has not reached all.
    if try slots.finish(in: file, copiesAt: layout.keyCopies) { map = try file.map() }
    state = Mutex(State(layout: layout, slots: slots, parity: Self.parity(layout, in: map)))
    try state.withLock { try mendEnd(map, &$0) }
  }

  /// Begins a sealed archive in a storage that is empty.
  ///
  /// - Parameters:
  ///   - file: The storage.
  ///   - recipients: The recipients who may open it.
  ///   - keys: Stores the archive's identity: this process reads what it writes.
  /// - Throws: what the storage throws; `AgeError`; ``SealedError``.
  init(creating file: any ArchiveStorage, for recipients: [SealedRecipient], _ keys: KeyRing) throws
  {
    (self.file, identity) = (file, try AgeIdentity.generate())
    var slots = try KeySlots(identity, for: recipients)
    // Kept before there is anything that needs it.
    try keys.remember(identity, of: slots)
    try slots.begin(file)
    state = Mutex(State(layout: SealedLayout(), slots: slots))
  }

  /// Begins another archive with an identity and its key frames, in an empty storage.
  ///
  /// - Parameter parity: How much is kept, in percent; nil for none.
  /// - Throws: as the other does.
  init(
    creating file: any ArchiveStorage, _ identity: AgeIdentity, _ slots: KeySlots, parity: Int?
  ) throws {
    (self.file, self.identity) = (file, identity)
    let parity = parity.map { Parity(percent: $0) }
    var slots = slots
    slots.upgrade()
    try slots.begin(file)
    state = Mutex(State(layout: SealedLayout(), slots: slots, parity: parity))
  }

  // MARK: Reading

  var size: UInt64 {
    get throws {
      let (count, end) = try state.withLock { state in
        try settle(&state)
        return (state.count, state.layout.end)
      }
      // Another program may have cut it off.
      guard try file.size >= UInt64(end) else { throw ArchiveError(.changedMeanwhile) }
      return UInt64(count)
    }
  }

  func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    try state.withLock { state in
      guard offset <= UInt64(state.count), count <= state.count - Int(offset) else {
        throw ArchiveError(.truncated, offset: offset)
      }
      let (start, end) = (Int(offset), Int(offset) + count)
      let border = state.layout.plainCount
      var bytes: [UInt8] = []
      if start < border {
        let range = start..<min(end, border)
        let map = try map(&state)
        bytes = map.withBytes(reading: [range]) { $0.array(range) }
        try map.checkFetched()
      }
      if end > border { bytes += state.rest[max(0, start - border)..<end - border] }
      return bytes
    }
  }

  func map() throws -> MappedFile {
    try state.withLock { state in
      try writeRest(&state)
      return try map(&state)
    }
  }

  /// Reads the pieces written so far.
  func map(_ state: inout State) throws -> MappedFile {
    try settle(&state)
    if let map = state.map { return map }
    let map = try SealedLayer.map(file.map(), state.layout, identity)
    state.map = map
    return map
  }

  // MARK: Writing

  func write(_ bytes: Span<UInt8>, at offset: UInt64) throws {
    try state.withLock { state in
      let border = state.layout.plainCount
      guard offset <= UInt64(state.count) else { throw ArchiveError(.changedMeanwhile) }
      var (place, taken) = (Int(offset), 0)
      if place < border {
        try settle(&state)
        taken = min(bytes.count, border - place)
        try replace(bytes.extracting(0..<taken), at: place, &state)
        place = border
      }
      // Over what waits, and after it.
      let overlap = min(bytes.count - taken, state.rest.count - (place - border))
      for index in 0..<overlap { state.rest[place - border + index] = bytes[taken + index] }
      taken += overlap
      while taken < bytes.count {
        let step = min(bytes.count - taken, Self.pieceLength - state.rest.count)
        state.rest.append(bytes.extracting(taken..<taken + step))
        taken += step
        if state.rest.count == Self.pieceLength { try writeRest(&state) }
      }
    }
  }

  /// Writes the waiting bytes, as a piece.
  private func writeRest(_ state: inout State) throws {
    guard !state.rest.isEmpty else { return }
    try settle(&state)
    let sealing = try FrameSealing(for: identity)
    let plain = state.rest
    state.rest = []
    state.rest.reserveCapacity(plain.count)
    let (number, start) = (state.layout.pieces.count, state.layout.plainCount)
    let place = try room(for: sealing.pieceFrameLength(plain.count), &state)
    state.layout.append(Piece(frame: place, plain: start..<start + plain.count, sealing))
    state.map = nil
    state.arriving = Meanwhile { [file] in
      Result {
        let frame = try sealing.frame(.piece, plain.span, number: number, plainOffset: start)
        try file.write(frame.span, at: UInt64(place.lowerBound))
      }
    }
  }

  /// Waits for the piece that is on its way.
  ///
  /// - Throws: why it was not written: then it and the bytes waiting after it are lost.
  func settle(_ state: inout State) throws {
    guard let arriving = state.arriving else { return }
    state.arriving = nil
    do {
      try arriving.value.get()
      state.isClean = true
    } catch {
      state.layout.truncate(to: state.layout.pieces.count - 1)
      (state.rest, state.map) = ([], nil)
      throw error
    }
  }

  /// Where a frame goes: after the last one that is whole.
  ///
  /// It is not clean there until it is written.
  func room(for count: Int, _ state: inout State) throws -> Range<Int> {
    try settle(&state)
    try finishReplacing(&state)
    let place = state.layout.end
    if !state.isClean {
      // What an interrupted write has left of a frame.
      try file.truncate(to: UInt64(place))
    }
    state.isClean = false
    state.unsyncedCount += count
    return place..<place + count
  }

  /// Writes a frame after the last one that is whole.
  func append(_ frame: [UInt8], _ state: inout State) throws -> Range<Int> {
    let place = try room(for: frame.count, &state)
    try file.write(frame.span, at: UInt64(place.lowerBound))
    state.isClean = true
    return place
  }

  func truncate(to size: UInt64) throws {
    try state.withLock { state in
      guard size < UInt64(state.count) else { return }
      let (size, border) = (Int(size), state.layout.plainCount)
      guard size < border else {
        state.rest.removeLast(border + state.rest.count - size)
        return
      }
      try settle(&state)
      try finishReplacing(&state)
      try fillGaps(size..<size + 1, &state)
      let cut = state.layout.pieces.partitioningIndex { $0.plain.upperBound > size }
      guard cut < state.layout.pieces.count else {
        throw ArchiveError(.damagedEnd, offset: UInt64(size))
      }
      let start = UInt64(state.layout.pieces[cut].plain.lowerBound)
      guard try source(&state).damaged(in: start..<UInt64(border)).isEmpty else {
        throw ArchiveError(.damagedEnd, offset: start)
      }
      let kept = state.layout.pieces[cut].plain.lowerBound..<size
      let map = try map(&state)
      let rest = map.withBytes(reading: [kept]) { $0.array(kept) }
      try map.checkFetched()
      try file.truncate(to: UInt64(state.layout.pieces[cut].frame.lowerBound))
      state.layout.truncate(to: cut)
      if let parity = state.parity, state.layout.end <= parity.end { state.parity?.isStale = true }
      (state.rest, state.map, state.isClean) = (rest, nil, true)
    }
  }

  func synchronize() throws {
    try state.withLock { state in
      try finishReplacing(&state)
      try writeRest(&state)
      try synchronize(&state)
    }
  }

  func synchronize(_ state: inout State) throws {
    try settle(&state)
    try file.synchronize()
    state.unsyncedCount = 0
  }

  /// Writes the waiting bytes and a table of the pieces that no table describes, and returns when
  /// both would survive a loss of power.
  func commit() throws {
    try state.withLock { state in
      try finishReplacing(&state)
      try writeRest(&state)
      let added = state.layout.untabledCount
      let isDue = added > 0 || state.parity?.isStale == true && !state.layout.pieces.isEmpty
      // A table says only how long pieces are. Where one is lost between them, the others would be
      // taken for those before it; until the archive is put in order, they are found one by one.
      guard isDue, state.layout.gaps.isEmpty else { return try commit(&state) }
      try appendKeyCopy(&state)
      try protect(&state)
      let mayBeUnsynced = state.slots.haveCopies ? 0 : Self.mostUnsynced
      if state.unsyncedCount > mayBeUnsynced || state.parity != nil { try synchronize(&state) }
      let tables = state.layout.tables
      // Behind new parity of what was there, the last table is written again.
      let kept =
        added > 0 ? PieceTable.keptCount(tables, adding: added) : max(0, tables.count - 1)
      let first = kept > 0 ? tables[kept - 1].pieces.upperBound : 0
      let plain = try PieceTable.plaintext(
        tables.prefix(kept), state.layout.pieces[first...],
        state.slots.haveCopies ? state.layout.keyCopies : nil, identity)
      let frame = try plain.withBytes { plain in
        try FrameSealing(for: identity).frame(
          .table, plain, number: state.layout.pieces.count, plainOffset: state.layout.plainCount)
      }
      let place = try append(frame, &state)
      state.layout.append(
        table: place, keeping: kept, isSynchronized: state.slots.haveCopies)
      state.parity?.end = place.lowerBound
      try commit(&state)
    }
  }

  func cutOffRest() throws {
    try state.withLock { state in
      let end = UInt64(state.layout.end)
      guard !state.isClean, state.rest.isEmpty, state.layout.gaps.isEmpty, !state.layout.isMoved,
        state.layout.torn.isEmpty, try file.size > end
      else { return }
      try file.truncate(to: end)
      try file.synchronize()
      (state.isClean, state.map) = (true, nil)
    }
  }

  /// Writes a key frame behind the pieces where one is due: far from those that are there.
  private func appendKeyCopy(_ state: inout State) throws {
    let (copies, end) = (state.layout.keyCopies, state.layout.end)
    let isDue =
      switch copies.count {
      case 0: true
      case 1: end >= Self.distantLength && end / Self.distantRatio >= copies[0]
      default: false
      }
    guard state.slots.haveCopies, isDue else { return }
    state.layout.append(keyCopy: try append(state.slots.stored, &state))
  }

  private func commit(_ state: inout State) throws {
    try settle(&state)
    try file.commit()
    state.unsyncedCount = 0
  }

  func note(_ newest: (WrittenSize.Content?) -> WrittenSize.Content?) throws {
    try file.note(newest)
  }

  // MARK: The file

  deinit { waitForArriving() }

  /// Waits for the piece that is on its way: nothing is written to a file that another writer may
  /// have.
  ///
  /// The next call that needs the file finds out whether it was written.
  private func waitForArriving() { state.withLock { _ = $0.arriving?.value } }

  func synchronizeName() throws { try file.synchronizeName() }
  func lock() throws { try file.lock() }
  func unlock() {
    waitForArriving()
    file.unlock()
  }
  func restrictToOwner() throws { try file.restrictToOwner() }
  var isSealed: Bool { true }
  var isDisplaced: Bool { get throws { try state.withLock { try isDisplaced($0) } } }
  var isInPlace: Bool { get throws { try file.isInPlace } }
}
