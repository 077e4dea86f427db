internal import ATProtocol
internal import Archive
internal import IPLD

/// Goes through the sections of an archive for a ``BlockCensus``.
struct CensusIntake {
  /// The sections one after the other, as in a CAR; those without interest without their bodies.
  let spool: TemporaryFile
  /// What each of them is.
  private(set) var kinds: [BlockCensus.Kind] = []
  /// Which numbers they have in the archive, from which position on.
  private(set) var runs: [(first: UInt64, position: Int, count: Int)] = []

  private let damaged: Set<CID>
  private var scanner = RecordScanner()
  /// The number of the section that comes next.
  private var next: UInt64 = 0
  /// The large section whose body is being copied: how much of it is to come, and where it begins here.
  private var large: (rest: UInt64, start: Int)?

  /// Says that the body that follows is not wanted.
  private struct NotWanted: Error {}

  init(except damaged: Set<CID>) throws {
    spool = try TemporaryFile()
    self.damaged = damaged
  }

  /// Takes in everything that can be read.
  ///
  /// - Throws: ``BackupError`` if there is no room for it.
  mutating func read(_ reader: ArchiveReader, _ observer: Progress.Observer) throws {
    try read(0..<reader.sectionLimit, reader, observer)
  }

  private mutating func read(
    _ sections: Range<UInt64>, _ reader: ArchiveReader, _ observer: Progress.Observer
  ) throws {
    next = sections.lowerBound
    while next < sections.upperBound {
      do {
        try reader.copySections(CollectionOfOne(next..<sections.upperBound), isHashing: false) {
          (piece) throws in
          try take(piece)
          observer(
            Progress(stage: "reading", done: UInt64(spool.count), total: 0))
        }
      } catch is NotWanted {
        // It has been taken note of.
      } catch is ArchiveError {
        // What is damaged is in the report on the file, and shows as missing in the trees.
        try forgetLarge()
        next += 1
      }
    }
  }

  /// Takes whole sections, the prefix of a large one, or a piece of its body.
  private mutating func take(_ piece: Span<UInt8>) throws {
    if let (rest, start) = large {
      try spool.write(piece)
      large = (rest - UInt64(piece.count), start)
      if rest == UInt64(piece.count) {
        large = nil
        count(.kept)
      }
      return
    }
    var offset = 0
    while offset < piece.count {
      let prefix = try SectionPrefix(piece, at: offset, place: 0)
      guard !prefix.isLarge else {
        try begin(prefix)
        return
      }
      let body = offset + prefix.length..<offset + Int(prefix.sectionLength)
      try take(prefix.cid, piece.extracting(body))
      offset = body.upperBound
    }
  }

  private mutating func take(_ cid: CID, _ body: Span<UInt8>) throws {
    guard !damaged.contains(cid) else {
      next += 1
      return
    }
    let kind = kind(cid, body)
    try write(cid, bodyLength: kind == .kept ? UInt64(body.count) : 0)
    if kind == .kept { try spool.write(body) }
    count(kind)
  }

  private mutating func begin(_ prefix: SectionPrefix) throws {
    let isWanted =
      prefix.cid.codec == .dagCBOR && prefix.bodyLength <= UInt64(CARLimits.mapped.section / 2)
    guard isWanted, !damaged.contains(prefix.cid) else {
      if damaged.contains(prefix.cid) {
        next += 1
      } else {
        try write(prefix.cid, bodyLength: 0)
        count(.other)
      }
      throw NotWanted()
    }
    large = (prefix.bodyLength, spool.count)
    try write(prefix.cid, bodyLength: prefix.bodyLength)
  }

  /// Takes back a large section that could not be read to its end.
  private mutating func forgetLarge() throws {
    guard let start = large?.start else { return }
    large = nil
    try spool.truncate(to: start)
  }

  private mutating func write(_ cid: CID, bodyLength: UInt64) throws {
    var prefix: [UInt8] = []
    SectionPrefix.append(cid.bytes, bodyLength: bodyLength, to: &prefix)
    try spool.write(prefix.span)
  }

  /// Counts the section that has been written.
  private mutating func count(_ kind: BlockCensus.Kind) {
    if let last = runs.indices.last, runs[last].first + UInt64(runs[last].count) == next {
      runs[last].count += 1
    } else {
      runs.append((next, kinds.count, 1))
    }
    kinds.append(kind)
    next += 1
  }

  /// What a small section is.
  private mutating func kind(_ cid: CID, _ body: Span<UInt8>) -> BlockCensus.Kind {
    switch cid.codec {
    case .dagCBOR: !MSTNode.isLikely(body) && scanner.isPlain(body) ? .plainRecord : .kept
    // A tree may name one of these as a node or a record, if it begins as a map does.
    case .raw: body.count > 0 && body[0] >> 5 == 5 ? .kept : .other
    default: .other
    }
  }
}
