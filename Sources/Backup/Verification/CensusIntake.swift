internal import ATProtocol
internal import Archive
internal import IPLD

/// What is taken in of an archive for a ``BlockCensus``.
///
/// Sections come from frames that are just being verified, as ``CensusPart``, or are read one after the other through the archive's index.
struct CensusIntake {
  /// The sections one after the other, as in a CAR; those without interest without their bodies.
  let spool: TemporaryFile
  /// What each of them is.
  private(set) var kinds: [BlockCensus.Kind] = []
  /// How many bytes they have together in the archive, up to each.
  private(set) var ends: [UInt64] = []
  /// Which numbers they have in the archive, from which position on.
  private(set) var runs: [(first: UInt64, position: Int, count: Int)] = []
  /// Sections that came and have to be read through the index.
  private(set) var postponed: [UInt64] = []

  private let damaged: Set<CID>
  private var scanner = RecordScanner()
  /// The number of the section that comes next.
  private(set) var next: UInt64 = 0
  /// The large section whose body is being copied: how much of it is to come, and where it begins here.
  private var large: (prefix: SectionPrefix, rest: UInt64, start: Int)?

  /// Says that the body that follows is not wanted.
  private struct NotWanted: Error {}

  /// An intake of nothing yet.
  ///
  /// - Parameter damaged: the sections that do not hash to their CIDs: they are not taken in.
  init(except damaged: Set<CID> = []) throws {
    spool = try TemporaryFile()
    self.damaged = damaged
  }

  // MARK: From frames

  /// Takes what came of the next frame.
  mutating func take(_ part: CensusPart) throws {
    try spool.write(part.bytes.span)
    for (kind, length) in zip(part.kinds, part.lengths) {
      if let kind {
        count(kind, length)
      } else {
        postponed.append(next)
        next += 1
      }
    }
  }

  // MARK: Through the index

  /// Takes in of some sections everything that can be read.
  ///
  /// - Throws: ``BackupError`` if there is no room for it.
  mutating func read(
    _ sections: Range<UInt64>, _ reader: ArchiveReader, _ observer: Progress.Observer = { _ in }
  ) throws {
    next = sections.lowerBound
    while next < sections.upperBound {
      do {
        try reader.copySections(CollectionOfOne(next..<sections.upperBound), isHashing: false) {
          (piece) throws in
          try take(piece)
          observer(Progress(stage: "reading", done: UInt64(spool.count), total: 0))
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
    if let (prefix, rest, start) = large {
      try spool.write(piece)
      large = (prefix, rest - UInt64(piece.count), start)
      if rest == UInt64(piece.count) {
        large = nil
        count(.kept, prefix.sectionLength)
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
      offset = body.upperBound
      guard !damaged.contains(prefix.cid) else {
        next += 1
        continue
      }
      var part = CensusPart()
      part.append(prefix.cid, piece.extracting(body), &scanner)
      try take(part)
    }
  }

  private mutating func begin(_ prefix: SectionPrefix) throws {
    guard !damaged.contains(prefix.cid) else {
      next += 1
      throw NotWanted()
    }
    var part = CensusPart()
    guard
      prefix.cid.codec == .dagCBOR, prefix.bodyLength <= UInt64(CARLimits.mapped.section / 2)
    else {
      part.append(prefix.cid, ofOther: prefix.bodyLength)
      try take(part)
      throw NotWanted()
    }
    large = (prefix, prefix.bodyLength, spool.count)
    var bytes: [UInt8] = []
    CARWriter.appendPrefix(prefix.cid, bodyLength: prefix.bodyLength, to: &bytes)
    try spool.write(bytes.span)
  }

  /// Takes back a large section that could not be read to its end.
  private mutating func forgetLarge() throws {
    guard let start = large?.start else { return }
    large = nil
    try spool.truncate(to: start)
  }

  /// Counts the section that has been written.
  private mutating func count(_ kind: BlockCensus.Kind, _ length: UInt64) {
    if let last = runs.indices.last, runs[last].first + UInt64(runs[last].count) == next {
      runs[last].count += 1
    } else {
      runs.append((next, kinds.count, 1))
    }
    kinds.append(kind)
    ends.append((ends.last ?? 0).addingSaturated(length))
    next += 1
  }
}

/// What is kept of sections that follow one another.
struct CensusPart {
  /// The sections, those without interest without their bodies.
  private(set) var bytes: [UInt8] = []
  /// What each of them is; nil for one that has frames of its own and has to be read whole.
  private(set) var kinds: [BlockCensus.Kind?] = []
  /// How many bytes each of them has in the archive.
  private(set) var lengths: [UInt64] = []

  /// Nothing yet.
  init() {}

  /// The sections of a frame.
  init(_ sections: FrameIntake.Sections) {
    var scanner = RecordScanner()
    let content = sections.content
    kinds.reserveCapacity(sections.cids.count)
    lengths.reserveCapacity(sections.cids.count)
    bytes.reserveCapacity(content.count / 2)
    for (index, cid) in sections.cids.enumerated() {
      if sections.bodies[index].count < sections.bodyLengths[index] {
        append(cid, ofLarge: sections.bodyLengths[index])
      } else {
        append(cid, content.span.extracting(sections.bodies[index]), &scanner)
      }
    }
  }

  /// Adds a section.
  mutating func append(_ cid: CID, _ body: Span<UInt8>, _ scanner: inout RecordScanner) {
    let kind = Self.kind(cid, body, &scanner)
    guard kind == .kept else { return append(cid, kind, UInt64(body.count)) }
    append(cid, kind, UInt64(body.count), keeping: body.count)
    bytes.append(contentsOf: body)
  }

  /// Adds a section that is nothing a repository consists of.
  mutating func append(_ cid: CID, ofOther bodyLength: UInt64) { append(cid, .other, bodyLength) }

  private mutating func append(_ cid: CID, ofLarge bodyLength: UInt64) {
    guard cid.codec == .dagCBOR else { return append(cid, ofOther: bodyLength) }
    kinds.append(nil)
    lengths.append(0)
  }

  private mutating func append(
    _ cid: CID, _ kind: BlockCensus.Kind, _ bodyLength: UInt64, keeping kept: Int = 0
  ) {
    kinds.append(kind)
    let cidLength = cid.byteCount
    let total = UInt64(cidLength).addingSaturated(bodyLength)
    lengths.append(total.addingSaturated(UInt64(Varint.length(of: total))))
    Varint.append(UInt64(cidLength + kept), to: &bytes)
    cid.append(to: &bytes)
  }

  /// What a section is.
  private static func kind(_ cid: CID, _ body: Span<UInt8>, _ scanner: inout RecordScanner)
    -> BlockCensus.Kind
  {
    switch cid.codec {
    case .dagCBOR: !MSTNode.isLikely(body) && scanner.isPlain(body) ? .plainRecord : .kept
    // A tree may name one of these as a node or a record, if it begins as a map does.
    case .raw: body.count > 0 && body[0] >> 5 == 5 ? .kept : .other
    default: .other
    }
  }
}
