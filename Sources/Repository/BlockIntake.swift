internal import ATProtocol
package import Archive
package import Files
package import IPLD

/// What is read from an archive for a ``LaidOutBlocks``.
///
/// Sections come from frames that are just being verified, as ``FrameBlocks``, or are read one
/// after the other through the archive's index.
package struct BlockIntake {
  /// The sections one after the other, as in a CAR; those without interest without their bodies.
  let spool: TemporaryFile
  /// What each of them is.
  private(set) var kinds: [BlockKind] = []
  /// How many bytes they have together in the archive, up to each.
  private(set) var ends = AscendingNumbers()
  /// Which ordinals they have in the archive.
  private(set) var runs: [LaidOutBlocks.Run] = []
  /// Sections that came and have to be read through the index.
  package private(set) var postponed: [UInt64] = []

  /// Why the first section that could not be read could not.
  package private(set) var failure: ArchiveError?

  private let damaged: Set<CID>
  private let isHashing: Bool
  private let keepsRecords: Bool
  private let keepsAll: Bool
  private var scanner = RecordScanner()
  /// The number of the section that comes next.
  package private(set) var next: UInt64 = 0

  /// Says that a section comes that is large, which is read alone.
  private struct LargeSection: Error {
    let prefix: SectionPrefix
  }

  /// An intake of nothing yet.
  ///
  /// - Parameters:
  ///   - damaged: the sections that do not hash to their CIDs: they are not taken in.
  ///   - isHashing: whether all that is read is hashed.
  ///   - keepsRecords: whether records are kept of which nothing can be said but that they keep the
  ///     rules.
  ///   - keepsAll: whether every section is kept as it is.
  package init(
    except damaged: Set<CID> = [], isHashing: Bool = false, keepsRecords: Bool = false,
    keepsAll: Bool = false
  ) throws {
    spool = try TemporaryFile()
    (self.damaged, self.isHashing) = (damaged, isHashing)
    (self.keepsRecords, self.keepsAll) = (keepsRecords, keepsAll)
  }

  // MARK: From frames

  /// Takes the result of the next frame.
  package mutating func take(_ part: FrameBlocks) throws {
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
  /// - Parameters:
  ///   - sections: which.
  ///   - reader: the archive.
  ///   - total: how many bytes there are to be read; 0 if that is not known.
  ///   - observer: called with the number read, those of a large section before it is read.
  /// - Throws: ``BackupError`` if there is no room for it; what `observer` throws.
  package mutating func read(
    _ sections: Range<UInt64>, _ reader: ArchiveReader, total: UInt64 = 0,
    _ observer: (Progress) throws -> Void = { _ in }
  ) throws {
    next = sections.lowerBound
    while next < sections.upperBound {
      do {
        try reader.copySections(
          CollectionOfOne(next..<sections.upperBound), isHashing: isHashing
        ) { piece in
          try take(piece)
          try observer(Progress(stage: "reading", done: ends.last ?? 0, total: total))
        }
      } catch let large as LargeSection {
        let done = (ends.last ?? 0).addingSaturated(large.prefix.sectionLength)
        try observer(Progress(stage: "reading", done: done, total: total))
        try take(large.prefix, reader)
      } catch let error as ArchiveError where error.faultKind != .system {
        pass(error)
      }
    }
  }

  /// Passes over a section that cannot be read.
  ///
  /// What is damaged is in the report on the file, and shows as missing in the trees.
  private mutating func pass(_ error: ArchiveError) {
    failure = failure ?? error
    next += 1
  }

  /// Takes whole sections.
  ///
  /// - Throws: ``LargeSection`` where one begins.
  private mutating func take(_ piece: Span<UInt8>) throws {
    var part = FrameBlocks(keepsRecords: keepsRecords, keepsAll: keepsAll)
    var offset = 0
    while offset < piece.count {
      let prefix = try SectionPrefix(piece, at: offset, place: 0)
      guard !prefix.isLarge else {
        try take(part)
        throw LargeSection(prefix: prefix)
      }
      let body = offset + prefix.length..<offset + Int(prefix.sectionLength)
      offset = body.upperBound
      if !damaged.isEmpty, damaged.contains(prefix.cid) {
        try take(part)
        part = FrameBlocks(keepsRecords: keepsRecords, keepsAll: keepsAll)
        next += 1
      } else {
        part.append(prefix.cid, piece, body, &scanner)
      }
    }
    try take(part)
  }

  /// Takes a large section: of one that is a block of a repository the body, too.
  private mutating func take(_ prefix: SectionPrefix, _ reader: ArchiveReader) throws {
    guard !damaged.contains(prefix.cid) else { return next += 1 }
    let isKept = keepsAll || prefix.cid.codec == .dagCBOR
    if isKept || isHashing {
      let start = spool.count
      do {
        try reader.copySections(CollectionOfOne(next..<next + 1), isHashing: isHashing) { piece in
          if isKept { try spool.write(piece) }
        }
      } catch let error as ArchiveError where error.faultKind != .system {
        try spool.truncate(to: start)
        return pass(error)
      }
    }
    guard !isKept else { return count(.kept, prefix.sectionLength) }
    var part = FrameBlocks()
    part.append(prefix.cid, ofOther: prefix.bodyLength)
    try take(part)
  }

  /// Counts the section that has been written.
  private mutating func count(_ kind: BlockKind, _ length: UInt64) {
    if let last = runs.last, last.ordinals.upperBound == next {
      runs[runs.count - 1].ordinals = last.ordinals.lowerBound..<next + 1
    } else {
      runs.append((next..<next + 1, kinds.count))
    }
    kinds.append(kind)
    ends.append((ends.last ?? 0).addingSaturated(length))
    next += 1
  }
}

/// What is kept of sections that follow one another.
package struct FrameBlocks {
  /// The sections, those without interest without their bodies.
  private(set) var bytes: [UInt8] = []
  /// What each of them is; nil for one that has frames of its own and has to be read whole.
  private(set) var kinds: [BlockKind?] = []
  /// How many bytes each of them has in the archive.
  private(set) var lengths: [UInt64] = []
  private var keepsRecords = false
  private var keepsAll = false

  /// Nothing yet.
  package init(keepsRecords: Bool = false, keepsAll: Bool = false) {
    (self.keepsRecords, self.keepsAll) = (keepsRecords, keepsAll)
  }

  /// The sections of a frame.
  package init(_ sections: FrameSections) {
    var scanner = RecordScanner()
    let content = sections.content
    kinds.reserveCapacity(sections.cids.count)
    lengths.reserveCapacity(sections.cids.count)
    bytes.reserveCapacity(content.count / 2)
    for (index, cid) in sections.cids.enumerated() {
      if sections.bodies[index].count < sections.bodyLengths[index] {
        append(cid, ofLarge: sections.bodyLengths[index])
      } else {
        append(cid, content.span, sections.bodies[index], &scanner)
      }
    }
  }

  /// Adds a section.
  ///
  /// - Parameters:
  ///   - cid: its CID.
  ///   - content: what it lies in.
  ///   - body: where its body lies there; in front of that stands the CID.
  ///   - scanner: looks at records.
  mutating func append(
    _ cid: CID, _ content: Span<UInt8>, _ body: Range<Int>, _ scanner: inout RecordScanner
  ) {
    let kind = keepsAll ? .kept : Self.kind(cid, content.extracting(body), &scanner)
    let cidLength = cid.byteCount
    let isKept = kind == .kept || keepsRecords && kind == .plainRecord
    count(kind, cidLength, UInt64(body.count))
    Varint.append(UInt64(cidLength + (isKept ? body.count : 0)), to: &bytes)
    let start = body.lowerBound - cidLength
    bytes.append(
      contentsOf: content.extracting(start..<(isKept ? body.upperBound : body.lowerBound)))
  }

  /// Adds a section that is nothing a repository consists of.
  mutating func append(_ cid: CID, ofOther bodyLength: UInt64) {
    let cidLength = cid.byteCount
    count(.other, cidLength, bodyLength)
    Varint.append(UInt64(cidLength), to: &bytes)
    cid.append(to: &bytes)
  }

  private mutating func append(_ cid: CID, ofLarge bodyLength: UInt64) {
    guard cid.codec == .dagCBOR else { return append(cid, ofOther: bodyLength) }
    kinds.append(nil)
    lengths.append(0)
  }

  private mutating func count(_ kind: BlockKind, _ cidLength: Int, _ bodyLength: UInt64) {
    kinds.append(kind)
    let total = UInt64(cidLength).addingSaturated(bodyLength)
    lengths.append(total.addingSaturated(UInt64(Varint.length(of: total))))
  }

  /// What a section is.
  private static func kind(_ cid: CID, _ body: Span<UInt8>, _ scanner: inout RecordScanner)
    -> BlockKind
  {
    switch cid.codec {
    case .dagCBOR: !MSTNode.isLikely(body) && scanner.isPlain(body) ? .plainRecord : .kept
    // A tree may name one of these as a node or a record, if it begins as a map does.
    case .raw: body.count > 0 && body[0] >> 5 == 5 ? .kept : .other
    default: .other
    }
  }
}
