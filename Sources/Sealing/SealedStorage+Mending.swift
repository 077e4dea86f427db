internal import Age
internal import Archive
internal import IPLD
internal import Synchronization

/// Writing over what is there: what an interrupted write or damage has left of pieces, and pieces
/// with other bytes.
extension SealedStorage {
  /// Writes pieces again that an interrupted write has left in part, or inside which the file ends:
  /// those that were not on the medium when the last table was written, or have none.
  ///
  /// One of which chunks are lost is left as it is, for parity may bring them back.
  func mendEnd(_ file: MappedFile, _ state: inout State) throws {
    let table = state.layout.tables.last?.frame.lowerBound ?? 0
    let pieces = state.layout.pieces
    let unsynced = state.layout.isSynchronized ? 0 : Self.mostUnsynced
    let first = pieces.partitioningIndex { $0.frame.upperBound > table - unsynced }
    var hasReplaced = false
    for piece in pieces[first...] {
      let holds = file.withBytes(reading: [piece.frame]) { bytes in
        SealedFrame(bytes, at: piece.frame.lowerBound).map {
          $0.range == piece.frame && $0.holds(in: bytes)
        } ?? false
      }
      guard !holds,
        let plain = try SealedSource(file, state.layout, identity).content(of: piece)
      else { continue }
      // What is left of it may lack the place of its checksum.
      let missing = piece.frame.upperBound - file.count
      if missing > 0 {
        let zeros = [UInt8](repeating: 0, count: missing)
        try self.file.write(zeros.span, at: UInt64(file.count))
      }
      try replace(piece, by: plain, &state)
      hasReplaced = true
    }
    try file.checkFetched()
    // That the replacements were cut off.
    if hasReplaced { try synchronize(&state) }
  }

  /// The layout of a file in which a piece was written again.
  static func layout(_ file: MappedFile, _ identity: AgeIdentity, replaced: Range<Int>)
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
  func fillGaps(_ range: Range<Int>, _ state: inout State) throws {
    while let gap = state.layout.gaps.first(where: { $0.plain.overlaps(range) }) {
      try fill(gap, &state)
    }
  }

  /// Whether pieces are lost, or do not lie where they belong, and nothing else lies in the file
  /// that would be lost if the archive were rewritten.
  func isDisplaced(_ state: State) throws -> Bool {
    let layout = state.layout
    let known = Set(layout.pieces.map(\.frame))
    let map = try file.map()
    let isInPlace = KeySlots.areInPlace(in: map)
    var isDisplaced = layout.isMoved || !layout.gaps.isEmpty || !isInPlace
    var walk = SealedFrameWalk(map, from: isInPlace ? KeySlots.length : 0)
    while let step = walk.next() {
      // A key frame that is damaged is written again where it was.
      let isKeySlot = state.layout.keyCopies.contains(step.gap.lowerBound)
      isDisplaced = isDisplaced || isInPlace && !step.gap.isEmpty && !isKeySlot
      switch step.frame.kind {
      case .piece where step.holds:
        guard known.contains(step.frame.range) else { return false }
      case .keySlot where step.holds:
        let slots = try map.withBytes(reading: [step.frame.range]) {
          try KeySlots($0, at: step.frame.range.lowerBound)
        }
        guard try slots.areOf(identity) else { return false }
      case .piece, .keySlot, .table, .void, .replacement, .parity, nil: continue
      }
    }
    return isDisplaced
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
      let sealing = try FrameSealing(for: identity)
      let frame = try sealing.frame(
        .piece, zeros.span, number: gap.number + pieces.count, plainOffset: plain.lowerBound)
      let place = gap.file.lowerBound + bytes.count
      bytes += frame
      pieces.append(Piece(frame: place..<place + frame.count, plain: plain, sealing))
    }
    let rest = gap.file.count - bytes.count
    guard rest >= 0 else {
      throw ArchiveError(
        .damagedSeal("lost pieces do not fit into their place"),
        offset: UInt64(gap.file.lowerBound))
    }
    if rest >= SealedFrame.emptyLength {
      let count = rest - SealedFrame.emptyLength
      bytes += SealedFrame.bytes(.void, number: 0, plainOffset: 0, reserving: count) {
        $0.append(contentsOf: repeatElement(0, count: count))
      }
    }
    state.parity?.isStale = true
    try file.write(bytes.span, at: UInt64(gap.file.lowerBound))
    try synchronize(&state)
    state.layout.insert(pieces, at: gap.number)
    state.map = nil
  }

  // MARK: Putting in order

  /// Writes the archive into an empty file, with its pieces where they belong.
  ///
  /// What does not open is zeros up to the last footer, whose checksums tell that it is lost. Behind
  /// that it stays what does not open: zeros would be taken for what was never written.
  ///
  /// - Throws: what the storages throw; `AgeError` if the system lacks what age needs.
  func putInOrder(in new: any ArchiveStorage) throws {
    let committed = try ArchiveReader.lastGeneration(of: map())?.committedLength ?? 0
    try state.withLock { state in
      try finishReplacing(&state)
      let source = try source(&state)
      let target = try SealedStorage(
        creating: new, identity, state.slots, parity: state.parity?.percent)
      let parts = (state.layout.pieces + state.layout.torn).sorted {
        $0.plain.lowerBound < $1.plain.lowerBound
      }
      for piece in parts {
        try target.appendLost(upTo: piece.plain.lowerBound, Int(committed))
        try target.append(piece, from: source, Int(committed))
        source.file.releasePages()
      }
      try target.appendLost(upTo: state.layout.plainCount, Int(committed))
      try source.file.checkFetched()
      try target.commit()
    }
  }

  /// Appends a piece of another file with the same identity.
  private func append(_ piece: Piece, from source: SealedSource, _ committed: Int) throws {
    try state.withLock { state in
      guard piece.plain.lowerBound == state.layout.plainCount else { return }
      let (content, isWhole) = try source.contentOrZeros(of: piece)
      guard piece.isCutOff || !isWhole && piece.plain.lowerBound < committed else {
        let stored = try source.storedFrame(of: piece)
        let frame = SealedFrame.movedPiece(
          stored, number: state.layout.pieces.count, plainOffset: piece.plain.lowerBound, isWhole)
        let place = try append(frame, &state)
        state.layout.append(
          Piece(frame: place, plain: piece.plain, fileKey: piece.fileKey, nonce: piece.nonce))
        return
      }
      try append(content: content, &state)
    }
  }

  /// Appends pieces for what is lost before a place.
  private func appendLost(upTo end: Int, _ committed: Int) throws {
    try state.withLock { state in
      while state.layout.plainCount < end {
        let start = state.layout.plainCount
        let border = start < committed ? min(end, committed) : end
        let count = min(Self.pieceLength, border - start)
        if start < committed {
          try append(content: [UInt8](repeating: 0, count: count), &state)
        } else {
          let sealing = try FrameSealing(for: identity)
          let frame = sealing.lostFrame(
            count, number: state.layout.pieces.count, plainOffset: start)
          let place = try append(frame, &state)
          state.layout.append(Piece(frame: place, plain: start..<start + count, sealing))
        }
      }
    }
  }

  /// Appends a piece with this content.
  private func append(content: [UInt8], _ state: inout State) throws {
    let start = state.layout.plainCount
    let sealing = try FrameSealing(for: identity)
    let frame = try sealing.frame(
      .piece, content.span, number: state.layout.pieces.count, plainOffset: start)
    let place = try append(frame, &state)
    state.layout.append(Piece(frame: place, plain: start..<start + content.count, sealing))
  }

  // MARK: What is damaged

  /// What reads the pieces that are there.
  func source(_ state: inout State) throws -> SealedSource {
    try settle(&state)
    return SealedSource(try file.map(), state.layout, identity)
  }

  /// Whether something that was committed follows the last footer, and is damaged.
  var isEndDamaged: Bool {
    get throws {
      let file = try map()
      return try file.damagedEnd(behind: ArchiveReader.lastGeneration(of: file)) != nil
    }
  }

  // MARK: Writing over pieces

  /// Writes over bytes that lie in pieces.
  func replace(_ bytes: Span<UInt8>, at offset: Int, _ state: inout State) throws {
    try fillGaps(offset..<offset + bytes.count, &state)
    // What is lost at the end, nothing is written over.
    guard state.layout.lost(in: offset..<offset + bytes.count).isEmpty else {
      throw ArchiveError(.damagedEnd, offset: UInt64(offset))
    }
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
    let sealing = try FrameSealing(header(of: piece))
    let frame = try sealing.frame(
      .piece, plain.span, number: number, plainOffset: piece.plain.lowerBound)
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
    let new = Piece(frame: piece.frame, plain: piece.plain, sealing)
    state.unfinished = (number, new, frame)
    state.parity?.isStale = true
    try finishReplacing(&state)
  }

  /// Writes a piece of which there is a copy into its place, and cuts the copy off.
  func finishReplacing(_ state: inout State) throws {
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
      } catch let error as AgeError where error.faultKind == .damage {
        return nil
      }
    }
    if let bytes { return (bytes, piece.fileKey) }
    return try AgeHeader.make(for: [identity.recipient], fileKey: piece.fileKey)
  }
}
