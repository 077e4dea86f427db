internal import Archive
internal import Files
internal import IPLD
internal import Snapshots

/// Copying sections that are named by their CIDs.
extension SectionCopier {
  /// What has become of a section that something names.
  enum Outcome: UInt8 {
    /// It is in the new archive.
    case copied
    /// The archive held it, and it cannot be read.
    case lost
    /// The archive does not hold it.
    case absent
  }

  /// The longest block whose links are followed.
  private static var maximumBlock: Int { 16 << 20 }

  /// Copies a section, if the archive holds it.
  mutating func copy(_ cid: CID, from source: Int) throws -> Outcome {
    let archive = sources[source]
    do {
      let known = blocks[source].ordinal(of: cid)
      let found = try known ?? archive.reading { try archive.reader.section(of: cid)?.ordinal }
      guard let ordinal = found else { return .absent }
      if copied[source].isUntouched(ordinal) { try copy(ordinal..<ordinal + 1, from: source) }
      return copied[source][ordinal] == nil ? .lost : .copied
    } catch BackupError.damagedArchive where isSalvage {
      return .lost
    }
  }

  /// Copies a section that has to be there.
  ///
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if it is not, except in salvage.
  /// - Returns: whether it is in the new archive.
  mutating func require(_ cid: CID, from source: Int) throws -> Bool {
    let outcome = try copy(cid, from: source)
    guard outcome == .copied || isSalvage else {
      throw BackupError.damagedArchive(
        sources[source].name, "\(SnapshotError.blockMissing(cid))")
    }
    return outcome == .copied
  }

  /// Copies what fields of unknown meaning lead to: each block that is there, and what it links to.
  ///
  /// A later version may have lists that this one does not know. Too much is kept rather than too
  /// little.
  mutating func follow(_ links: [CID], from source: Int) throws {
    let archive = sources[source]
    var open = links
    while let cid = open.popLast() {
      guard try copy(cid, from: source) == .copied, cid.codec == .dagCBOR,
        let ordinal = blocks[source].ordinal(of: cid), copied[source].follow(ordinal)
      else { continue }
      open += try archive.reading {
        guard let section = try archive.reader.section(of: cid),
          section.bodyLength <= UInt64(Self.maximumBlock),
          let body = try archive.reader.body(of: cid)
        else { return [] }
        return Self.links(in: body)
      }
    }
  }

  /// The links of a block; none of one that is not DAG-CBOR.
  private static func links(in block: [UInt8]) -> [CID] {
    var links: [CID] = []
    var scanner = DAGCBORScanner()
    do {
      while let token = try scanner.next(in: block.span) {
        if case .link(let range) = token { links.append(try CID(block.span.extracting(range))) }
      }
    } catch {
      // What cannot be read leads nowhere.
      return []
    }
    return links
  }

  /// The order in the new archive of sections that have been copied.
  func newOrder(_ order: BlockOrder, from source: Int) throws -> BlockOrder {
    let maximumRuns = sources[source].reader.maximumRuns
    var new = BlockOrder()
    for run in order.runs {
      for ordinal in run {
        guard let ordinal = copied[source][ordinal] else {
          throw BackupError.copyFailed("a section was passed over")
        }
        new.append(ordinal)
        guard new.runs.count <= maximumRuns else {
          throw BackupError.damagedArchive(
            sources[source].name, "\(SnapshotError.tooManyRuns(limit: maximumRuns))")
        }
      }
    }
    return new
  }
}
