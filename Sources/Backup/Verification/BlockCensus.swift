internal import ATProtocol
internal import Archive
internal import IPLD

/// All blocks of an archive, as walking the trees of many snapshots needs them.
///
/// Trees ask for their nodes in an order that has nothing to do with that of the file, so everything they may ask for is laid out first: every
/// CID, and the bodies of tree nodes, of commits, and of the few records that have more to say than that they keep the rules. This lies in a
/// file without a name; each block is in it once, however many snapshots share it. What is in memory is a ``BlockTable``.
///
/// Blocks are numbered in the order of the file. They are not hashed here: whoever takes the census has verified the archive, and says which
/// sections are damaged.
struct BlockCensus {
  /// What is known of a block at a glance.
  enum Kind: UInt8 {
    /// A record about which there is nothing to say.
    case plainRecord
    /// Anything whose body is at hand.
    case kept
    /// A blob, or what else is nothing that a repository consists of.
    case other
  }

  /// Where each block is, by its CID.
  let table: BlockTable
  private let kinds: [Kind]
  /// Sections that follow one another, and so do the blocks that they are.
  private struct Run {
    var ordinals: Range<UInt64>
    let index: Int
  }

  /// Which numbers the sections have here that have these in the archive, in order of ordinals.
  private let runs: [Run]
  /// The same without sections that are another time what one before them is, in order of the numbers here.
  private let firstRuns: [Run]
  private let spool: TemporaryFile
  private let mapped: MappedFile

  /// Takes the census of an archive.
  ///
  /// - Parameters:
  ///   - reader: the archive.
  ///   - damaged: the sections that do not hash to their CIDs: they count as not there.
  ///   - observer: is told how many sections have been seen.
  /// - Throws: ``BackupError`` if there is no room for it. What cannot be read is not in it.
  init(_ reader: ArchiveReader, except damaged: Set<CID>, observer: Progress.Observer) throws {
    var intake = try CensusIntake(except: damaged)
    try intake.read(reader, observer)
    spool = intake.spool
    mapped = try spool.map()
    var table = BlockTable(expecting: intake.kinds.count)
    var kinds: [Kind] = []
    var (runs, firstRuns): ([Run], [Run]) = ([], [])
    kinds.reserveCapacity(intake.kinds.count)
    try mapped.withBytes { bytes throws(CARError) in
      var cursor = CARCursor(payload: 0..<bytes.count, limits: .mapped)
      var position = 0
      var place = 0
      while let (section, cid) = try cursor.next(in: bytes) {
        let (index, isNew) = table.insert(section, cid, in: bytes)
        while position >= intake.runs[place].position + intake.runs[place].count { place += 1 }
        let run = intake.runs[place]
        let ordinal = run.first + UInt64(position - run.position)
        Self.append(ordinal, index, to: &runs)
        if isNew {
          kinds.append(intake.kinds[position])
          Self.append(ordinal, index, to: &firstRuns)
        }
        position += 1
      }
    }
    self.table = table
    self.kinds = kinds
    self.runs = runs
    self.firstRuns = firstRuns
  }

  private static func append(_ ordinal: UInt64, _ index: Int, to runs: inout [Run]) {
    if let last = runs.last, last.ordinals.upperBound == ordinal,
      last.index + last.ordinals.count == index
    {
      runs[runs.count - 1].ordinals = last.ordinals.lowerBound..<ordinal + 1
    } else {
      runs.append(Run(ordinals: ordinal..<ordinal + 1, index: index))
    }
  }

  /// How many blocks there are.
  var count: Int { kinds.count }

  /// What a block is.
  @inline(__always)
  func kind(_ index: Int) -> Kind { kinds[index] }

  /// The number that a block has in the archive.
  func ordinal(_ index: Int) -> UInt64 {
    // The last run that begins at it or before.
    var (low, high) = (0, firstRuns.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if firstRuns[middle].index <= index { low = middle } else { high = middle }
    }
    return firstRuns[low].ordinals.lowerBound + UInt64(index - firstRuns[low].index)
  }

  /// Calls `body` with the bytes in which ``table`` finds the blocks.
  func withBytes<Value: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try mapped.withBytes(body)
  }

  /// The blocks that lie in these sections of the archive.
  func blocks(in sections: [Range<UInt64>]) -> BlockSet {
    var set = BlockSet(count: count)
    for section in sections {
      // The first run that ends behind the beginning.
      var (low, high) = (0, runs.count)
      while low < high {
        let middle = (low + high) / 2
        if runs[middle].ordinals.upperBound <= section.lowerBound {
          low = middle + 1
        } else {
          high = middle
        }
      }
      while low < runs.count, runs[low].ordinals.lowerBound < section.upperBound {
        let run = runs[low]
        let shared = run.ordinals.clamped(to: section)
        let index = run.index + Int(shared.lowerBound - run.ordinals.lowerBound)
        set.insert(index..<index + shared.count)
        low += 1
      }
    }
    return set
  }
}
