internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Snapshots

/// Writing blobs.
extension SnapshotExtractor {
  /// A blob that is to be written: its media type and size, as a record says, and the key of the
  /// record that refers to it first.
  typealias Blob = (cid: CID, mimeType: String?, size: Int?, record: String?)

  mutating func writeExtras() throws {
    do {
      try writeBlobs(archived.extras().map { ($0, nil, nil, nil) })
    } catch let error where Self.isOfArchive(error) {
      report.damaged.append(("extras", "\(error)"))
    }
  }

  /// Writes blobs whose records are lost; of several accounts, `carpack cat` gives them by their
  /// CIDs.
  mutating func writeStrays(except table: BlobTable) throws {
    let history = try SnapshotHistory(of: archived.reader)
    for stray in try archived.strays(history, besides: table.contains) {
      try writeBlob((stray, nil, nil, nil))
    }
  }

  /// Writes blobs in the order in which they lie in the archive, so that each frame is decompressed
  /// once, whatever the order of the records that refer to them.
  ///
  /// What is wrong is reported in the order of `blobs`.
  mutating func writeBlobs(_ blobs: [Blob]) throws {
    let earlier = report
    var found: [Int: Report] = [:]
    let order = try archiveOrder(of: blobs)
    for (done, (index, _)) in order.enumerated() {
      observer(Progress(stage: "blobs", done: UInt64(done), total: UInt64(blobs.count)))
      archived.reader.willReadSections(order[done...].lazy.map(\.ordinal))
      report = Report()
      try writeBlob(blobs[index])
      if !report.isEmpty { found[index] = report }
    }
    report = earlier
    for (_, later) in found.sorted(by: { $0.key < $1.key }) { report.add(later) }
  }

  /// The indices and numbers of blobs in the order in which these lie in the archive; those that
  /// are damaged or missing come last.
  private func archiveOrder(of blobs: [Blob]) throws -> [(index: Int, ordinal: UInt64)] {
    let states = try archived.reader.states(
      blobs.count, expectedLength: { blobs[$0].size.flatMap { UInt64(exactly: $0) } },
      cid: { blobs[$0].cid })
    let order = states.enumerated().map { index, state in
      if case .held(let ordinal, _) = state { (index, ordinal) } else { (index, UInt64.max) }
    }
    return order.sorted { ($0.1, $0.0) < ($1.1, $1.0) }
  }

  /// Blobs up to this length are read once, into memory: it takes their beginning to know their
  /// names.
  private static let maximumInMemory: UInt64 = 1 << 16

  mutating func writeBlob(_ blob: Blob) throws {
    let (cid, reader) = (blob.cid, archived.reader)
    let isShort: Bool
    switch archived.state(of: cid) {
    case .held(let length): isShort = length <= Self.maximumInMemory
    case .missing: return report.missing.append("\(cid)")
    case .damaged(let why): return report.damaged.append(("\(cid)", why))
    }
    let content: [UInt8]
    do {
      let found =
        try isShort
        ? reader.body(of: cid, limit: Int(Self.maximumInMemory))
        : Self.beginning(of: cid, in: reader)
      guard let found else { return report.missing.append("\(cid)") }
      content = found
    } catch let error where Self.isOfArchive(error) {
      return report.damaged.append(("\(cid)", "\(error)"))
    }
    let ending = fileExtension(cid, blob.mimeType, content.prefix(MediaType.signatureLength))
    try write(
      ["blobs", try name(of: blob, ending)], durably: !isShort, digest: cid.multihash.sha256,
      time: try notes?.time(of: cid, record: blob.record.map { Array($0.utf8) })
    ) { sink in
      guard isShort else { return _ = try reader.read(cid, each: sink) }
      let bytes = content
      try sink(bytes.span)
    }
  }

  /// The name of a blob's file.
  private mutating func name(of blob: Blob, _ ending: String) throws -> String {
    guard options.names == .readable, let record = blob.record else {
      return FileNaming.name("\(blob.cid)", ending: ".\(ending)")
    }
    for isWhole in [false, true] {
      guard let name = try notes?.name(of: blob.cid, record: Array(record.utf8), isWhole: isWhole)
      else { break }
      let full = "\(name).\(ending)"
      if claims?.insert("blobs/" + full) != false { return full }
    }
    return FileNaming.name("\(blob.cid)", ending: ".\(ending)")
  }

  /// As much of a blob as tells its type.
  private static func beginning(of cid: CID, in reader: ArchiveReader) throws -> [UInt8] {
    var beginning: [UInt8] = []
    struct Enough: Error {}
    do {
      try reader.read(cid) { chunk in
        let wanted = min(chunk.count, MediaType.signatureLength - beginning.count)
        beginning.append(contentsOf: chunk.extracting(0..<wanted))
        if beginning.count == MediaType.signatureLength { throw Enough() }
      }
    } catch is Enough {}
    return beginning
  }

  private mutating func fileExtension(
    _ cid: CID, _ mimeType: String?, _ beginning: ArraySlice<UInt8>
  ) -> String {
    let ending = MediaType.fileExtension(mimeType: mimeType, beginning: beginning.span)
    if let named = mimeType.flatMap(MediaType.fileExtension(of:)), named != ending {
      report.mistyped.append("\(cid): \(mimeType ?? "") in the record, \(ending) by its content")
    }
    return ending
  }
}
