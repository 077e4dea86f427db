internal import Age
internal import Archive
internal import IPLD
internal import Synchronization
internal import SystemPackage

/// The storage of an archive that is sealed on its way into another storage.
///
/// 1. What was written is in the file as soon as ``synchronize()`` has returned, in pieces that hold
///    up to ``pieceLength`` bytes each.
/// 2. A piece is encrypted under a key and a nonce that were never used: also where it takes the
///    place of another.
/// 3. A piece that is written over another was written behind all of them before, so that one of the
///    two is whole at every moment.
/// 4. When a table is written, the pieces that it describes are on the medium, up to some that lie
///    right before it: the next writer looks at these.
/// 5. No plaintext is written anywhere but into memory.
final class SealedStorage: ArchiveStorage {
  /// How many bytes of the archive a piece holds at most.
  static let pieceLength = 4 << 20
  /// How many bytes of pieces may not be on the medium when their table is written: to wait for the
  /// medium once more costs more than to read as much.
  private static let mostUnsynced = 64 << 10

  private let file: any ArchiveStorage
  private let identity: AgeIdentity
  private let state: Mutex<State>

  private struct State {
    var layout: SealedLayout
    /// What is in no piece yet.
    var rest: [UInt8] = []
    /// How many bytes may not be on the medium.
    var unsyncedCount = 0
    /// Whether nothing lies behind the last whole frame.
    var isClean = false
    /// A piece whose copy is in the file, and which has to be written into its place before anything
    /// else is.
    var unfinished: (number: Int, piece: Piece, bytes: [UInt8])?
    /// What reads the pieces, as long as they are those; what is read of them is kept in it.
    var map: MappedFile?

    var count: Int { layout.plainCount + rest.count }
  }

  /// Opens a sealed archive that is there.
  ///
  /// - Throws: what the storage throws; `AgeError`.
  init(_ file: any ArchiveStorage, _ identity: AgeIdentity, _ slots: KeySlots) throws {
    (self.file, self.identity) = (file, identity)
    var map = try file.map()
    var slots = slots
    var layout = try SealedLayout(map, identity)
    if let replacement = layout.replacement {
      let bytes = map.withBytes(reading: [replacement.frame]) { $0.array(replacement.frame) }
      try file.write(bytes.span, at: UInt64(replacement.target.lowerBound))
      try file.synchronize()
      try file.truncate(to: UInt64(layout.end))
      map = try file.map()
      layout = try Self.layout(map, identity, replaced: replacement.target)
    }
    state = Mutex(State(layout: layout))
    // An interrupted change of the keys has not reached both.
    if !slots.areBothWhole { try slots.write(to: file) }
    try state.withLock { try mendEnd(map, &$0) }
  }

  /// Writes pieces again that an interrupted write has left in part: those that were not on the
  /// medium when the last table was written, or have none.
  ///
  /// One of which chunks are lost is left as it is, for parity may bring them back.
  private func mendEnd(_ file: MappedFile, _ state: inout State) throws {
    let table = state.layout.tables.last?.frame.lowerBound ?? 0
    let pieces = state.layout.pieces
    let first = pieces.partitioningIndex { $0.frame.upperBound > table - Self.mostUnsynced }
    for piece in pieces[first...] {
      let holds = file.withBytes(reading: [piece.frame]) { bytes in
        SealedFrame(bytes, at: piece.frame.lowerBound).map {
          $0.range == piece.frame && $0.holds(in: bytes)
        } ?? false
      }
      guard !holds,
        let plain = try SealedSource(file, state.layout, identity).content(of: piece)
      else { continue }
      try replace(piece, by: plain, &state)
    }
    try file.checkFetched()
  }

  /// The layout of a file in which a piece was written again.
  private static func layout(_ file: MappedFile, _ identity: AgeIdentity, replaced: Range<Int>)
    throws -> SealedLayout
  {
    var layout = try SealedLayout(file, identity)
    let number = layout.pieces.partitioningIndex { $0.frame.lowerBound >= replaced.lowerBound }
    let frame = file.withBytes(reading: [replaced]) { SealedFrame($0, at: replaced.lowerBound) }
    guard number < layout.pieces.count, layout.pieces[number].frame == replaced, let frame,
      let piece = try SealedLayout.piece(frame, in: file, identity)
    else { return layout }
    // The table has the nonce that it had before.
    layout.replace(
      number,
      Piece(
        frame: replaced, plain: layout.pieces[number].plain, fileKey: piece.fileKey,
        nonce: piece.nonce))
    return layout
  }

  /// Makes pieces of what is missing among some bytes of the archive, which is going to be changed.
  private func fillGaps(_ range: Range<Int>, _ state: inout State) throws {
    while let gap = state.layout.gaps.first(where: { $0.plain.overlaps(range) }) {
      try fill(gap, &state)
    }
  }

  /// Writes pieces of zeros into a place where pieces were lost, which read as zeros already.
  private func fill(
    _ gap: (number: Int, plain: Range<Int>, file: Range<Int>), _ state: inout State
  ) throws {
    var (bytes, pieces) = ([UInt8](), [Piece]())
    for start in stride(from: gap.plain.lowerBound, to: gap.plain.upperBound, by: Self.pieceLength)
    {
      let plain = start..<min(start + Self.pieceLength, gap.plain.upperBound)
      let zeros = [UInt8](repeating: 0, count: plain.count)
      let (frame, fileKey, nonce) = try sealedFrame(
        .piece, zeros.span, number: gap.number + pieces.count, plainOffset: start)
      let place = gap.file.lowerBound + bytes.count
      bytes += frame
      pieces.append(
        Piece(
          frame: place..<place + frame.count, plain: plain, fileKey: fileKey, nonce: nonce))
    }
    let rest = gap.file.count - bytes.count
    guard rest >= 0 else {
      throw ArchiveError(
        .damagedSeal("pieces are lost that do not fit into their place"),
        offset: UInt64(gap.file.lowerBound))
    }
    if rest >= SealedFrame.emptyLength {
      let count = rest - SealedFrame.emptyLength
      bytes += SealedFrame.bytes(.void, number: 0, plainOffset: 0, reserving: count) {
        $0.append(contentsOf: repeatElement(0, count: count))
      }
    }
    try file.write(bytes.span, at: UInt64(gap.file.lowerBound))
    try synchronize(&state)
    state.layout.insert(pieces, at: gap.number)
    state.map = nil
  }

  /// Begins a sealed archive in a storage that is empty.
  ///
  /// - Parameters:
  ///   - file: The storage.
  ///   - recipients: Who may open it.
  ///   - keys: Learns the archive's identity: this process reads what it writes.
  /// - Throws: what the storage throws; `AgeError`; ``SealedError``.
  init(creating file: any ArchiveStorage, for recipients: [SealedRecipient], _ keys: KeyRing) throws
  {
    (self.file, identity) = (file, try AgeIdentity.generate())
    state = Mutex(State(layout: SealedLayout()))
    var slots = try KeySlots(identity, for: recipients)
    try slots.write(to: file)
    keys.remember(identity, of: slots)
  }

  /// Begins another archive that those may open who can open this one, in a storage that is empty.
  ///
  /// - Throws: as the other does.
  init(creating file: any ArchiveStorage, like archive: SealedSource) throws {
    (self.file, identity) = (file, archive.identity)
    state = Mutex(State(layout: SealedLayout()))
    var slots = try KeySlots(archive.file)
    try slots.write(to: file)
  }

  // MARK: Reading

  var size: UInt64 {
    get throws {
      let (count, end) = state.withLock { ($0.count, $0.layout.end) }
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

  /// What reads the pieces that there are.
  private func map(_ state: inout State) throws -> MappedFile {
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
        taken = min(bytes.count, border - place)
        try replace(bytes.extracting(0..<taken), at: place, &state)
        place = border
      }
      // Over what waits, and behind it.
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

  /// Writes what waits, as a piece.
  private func writeRest(_ state: inout State) throws {
    guard !state.rest.isEmpty else { return }
    let start = state.layout.plainCount
    let (frame, fileKey, nonce) = try sealedFrame(
      .piece, state.rest.span, number: state.layout.pieces.count, plainOffset: start)
    let place = try append(frame, &state)
    state.layout.append(
      Piece(
        frame: place, plain: start..<start + state.rest.count, fileKey: fileKey, nonce: nonce))
    state.rest.removeAll(keepingCapacity: true)
    state.map = nil
  }

  /// Writes a frame behind the last one that is whole.
  private func append(_ frame: [UInt8], _ state: inout State) throws -> Range<Int> {
    try finishReplacing(&state)
    let place = state.layout.end
    if !state.isClean {
      // What an interrupted write has left of a frame.
      try file.truncate(to: UInt64(place))
    }
    state.isClean = false
    try file.write(frame.span, at: UInt64(place))
    state.isClean = true
    state.unsyncedCount += frame.count
    return place..<place + frame.count
  }

  /// A frame with an age file of its own.
  ///
  /// - Parameter header: Its header and file key, where these are those of a piece that is written
  ///   again: the nonce is another.
  private func sealedFrame(
    _ kind: SealedFrame.Kind, _ plain: Span<UInt8>, number: Int, plainOffset: Int,
    _ header: (bytes: [UInt8], fileKey: SecretBytes)? = nil
  ) throws -> (bytes: [UInt8], fileKey: SecretBytes, nonce: [UInt8]) {
    let header = try header ?? AgeHeader.make(for: [identity.recipient])
    let nonce = try AgePayload.makeNonce()
    var payload = try AgePayload(fileKey: header.fileKey, nonce: nonce)
    let length = AgePayload.sealedLength(of: plain.count)
    let bytes = try SealedFrame.bytes(
      kind, number: UInt64(number), plainOffset: UInt64(plainOffset),
      reserving: header.bytes.count + nonce.count + length
    ) { bytes in
      bytes += header.bytes
      bytes += nonce
      bytes += try unsafe [UInt8](unsafeUninitializedCapacity: length) { target, count in
        try unsafe plain.withUnsafeBytes { plain in
          try unsafe payload.sealAll(plain, into: UnsafeMutableRawBufferPointer(target))
        }
        count = length
      }
    }
    return (bytes, header.fileKey, nonce)
  }

  /// Writes over bytes that lie in pieces.
  private func replace(_ bytes: Span<UInt8>, at offset: Int, _ state: inout State) throws {
    try fillGaps(offset..<offset + bytes.count, &state)
    for piece in state.layout.pieces(holding: offset..<offset + bytes.count) {
      let map = try map(&state)
      var plain = map.withBytes(reading: [piece.plain]) { $0.array(piece.plain) }
      try map.checkFetched()
      let part = piece.plain.clamped(to: offset..<offset + bytes.count)
      for place in part {
        plain[place - piece.plain.lowerBound] = bytes[place - offset]
      }
      try replace(piece, by: plain, &state)
    }
  }

  /// Writes other bytes of the same length into the place of a piece.
  private func replace(_ piece: Piece, by plain: [UInt8], _ state: inout State) throws {
    let number = state.layout.pieces.partitioningIndex {
      $0.frame.lowerBound >= piece.frame.lowerBound
    }
    let (frame, fileKey, nonce) = try sealedFrame(
      .piece, plain.span, number: number, plainOffset: piece.plain.lowerBound, header(of: piece))
    guard frame.count == piece.frame.count else {
      throw ArchiveError(
        .damagedSeal("a piece cannot be written again"), offset: UInt64(piece.frame.lowerBound))
    }
    let copy = SealedFrame.bytes(
      .replacement, number: 0, plainOffset: UInt64(piece.frame.lowerBound), reserving: frame.count
    ) { $0 += frame }
    _ = try append(copy, &state)
    state.isClean = false
    try synchronize(&state)
    let new = Piece(frame: piece.frame, plain: piece.plain, fileKey: fileKey, nonce: nonce)
    state.unfinished = (number, new, frame)
    try finishReplacing(&state)
  }

  /// Writes a piece of which there is a copy into its place, and cuts the copy off.
  private func finishReplacing(_ state: inout State) throws {
    guard let (number, piece, bytes) = state.unfinished else { return }
    try file.write(bytes.span, at: UInt64(piece.frame.lowerBound))
    try synchronize(&state)
    state.layout.replace(number, piece)
    (state.unfinished, state.map) = (nil, nil)
    try file.truncate(to: UInt64(state.layout.end))
    state.isClean = true
  }

  /// The header of a piece, or another with its file key if it is damaged.
  ///
  /// The file key stays as it is: a table knows the piece by it.
  private func header(of piece: Piece) throws -> (bytes: [UInt8], fileKey: SecretBytes) {
    let bytes = try file.map().withBytes(reading: [piece.frame]) { bytes -> [UInt8]? in
      guard let frame = SealedFrame(bytes, at: piece.frame.lowerBound) else { return nil }
      do {
        let header = try AgeHeader(parsing: bytes.extracting(frame.content))
        let start = frame.content.lowerBound
        guard try header.unwrap(with: [identity]) == piece.fileKey else { return nil }
        return bytes.array(start..<start + header.length)
      } catch let error as AgeError where error.isAboutTheFile {
        return nil
      }
    }
    if let bytes { return (bytes, piece.fileKey) }
    return try AgeHeader.make(for: [identity.recipient], fileKey: piece.fileKey)
  }

  func truncate(to size: UInt64) throws {
    try state.withLock { state in
      guard size < UInt64(state.count) else { return }
      let (size, border) = (Int(size), state.layout.plainCount)
      guard size < border else {
        state.rest.removeLast(border + state.rest.count - size)
        return
      }
      try finishReplacing(&state)
      try fillGaps(size..<size + 1, &state)
      let cut = state.layout.pieces.partitioningIndex { $0.plain.upperBound > size }
      let kept = state.layout.pieces[cut].plain.lowerBound..<size
      let map = try map(&state)
      let rest = map.withBytes(reading: [kept]) { $0.array(kept) }
      try map.checkFetched()
      try file.truncate(to: UInt64(state.layout.pieces[cut].frame.lowerBound))
      state.layout.truncate(to: cut)
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

  private func synchronize(_ state: inout State) throws {
    try file.synchronize()
    state.unsyncedCount = 0
  }

  /// Writes what waits and a table of what no table describes, and returns when that would survive a
  /// loss of power.
  func commit() throws {
    try state.withLock { state in
      try finishReplacing(&state)
      try writeRest(&state)
      guard state.layout.untabledCount > 0 else { return try synchronize(&state) }
      if state.unsyncedCount > Self.mostUnsynced { try synchronize(&state) }
      let tables = state.layout.tables
      let kept = PieceTable.keptCount(tables, adding: state.layout.untabledCount)
      let first = kept > 0 ? tables[kept - 1].pieces.upperBound : 0
      let plain = PieceTable.plaintext(tables.prefix(kept), state.layout.pieces[first...])
      let (frame, _, _) = try plain.withBytes { plain in
        try sealedFrame(
          .table, plain, number: state.layout.pieces.count, plainOffset: state.layout.plainCount)
      }
      state.layout.append(table: try append(frame, &state), keeping: kept)
      try synchronize(&state)
    }
  }

  // MARK: The file

  func synchronizeName() throws { try file.synchronizeName() }
  func lock() throws { try file.lock() }
  func unlock() { file.unlock() }
  func restrictToOwner() throws { try file.restrictToOwner() }
  var isInPlace: Bool { get throws { try file.isInPlace } }
}
