internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Snapshots

/// Writing blobs.
extension SnapshotExtractor {
  /// Writes blobs in the order in which they lie in the archive, so that each frame is decompressed
  /// once, whatever the order of the records that refer to them.
  ///
  /// What is wrong is reported in the order of `blobs`.
  ///
  /// - Parameters:
  ///   - blobs: which.
  ///   - table: what the records say of them.
  mutating func writeBlobs(_ blobs: [CID], _ table: BlobTable) throws {
    let reader = archived.reader
    let states = try reader.states(
      blobs.count, expectedLength: { table[blobs[$0]]?.size.flatMap { UInt64(exactly: $0) } },
      cid: { blobs[$0] })
    // Those that are damaged or missing come last.
    let order = states.enumerated().map { index, state -> (ordinal: UInt64, index: Int) in
      if case .held(let ordinal, _) = state { (ordinal, index) } else { (.max, index) }
    }.sorted { $0 < $1 }
    let earlier = report
    var found: [Int: Report] = [:]
    for (done, (_, index)) in order.enumerated() {
      observer(Progress(stage: "blobs", done: UInt64(done), total: UInt64(blobs.count)))
      reader.willReadSections(order[done...].lazy.map(\.ordinal))
      report = Report()
      try writeBlob(blobs[index], table[blobs[index]])
      if report.saysAnything { found[index] = report }
    }
    report = earlier
    for (_, later) in found.sorted(by: { $0.key < $1.key }) { report.add(later) }
  }

  /// Blobs up to this length are read once, into memory: their names depend on their beginning.
  private static let maximumInMemory: UInt64 = 1 << 16

  /// Writes a blob.
  ///
  /// - Parameters:
  ///   - cid: which.
  ///   - entry: what the records say of it; nil if none refers to it.
  mutating func writeBlob(_ cid: CID, _ entry: BlobTable.Entry?) throws {
    let reader = archived.reader
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
    } catch let error where error.isLoss {
      return report.damaged.append(("\(cid)", "\(error)"))
    }
    let mimeType = entry?.mimeType
    let beginning = content.prefix(MediaType.signatureLength)
    let ending = MediaType.fileExtension(mimeType: mimeType, beginning: beginning.span)
    if let mimeType, let named = MediaType.fileExtension(of: mimeType), named != ending {
      report.mistyped.append("\(cid): \(mimeType) in the record, \(ending) by its content")
    }
    let key = entry.map { Array($0.firstRecord.utf8) }
    let file = OutputFile(
      components: ["blobs", try name(of: cid, key, ending)], isDurable: !isShort,
      digest: cid.multihash.sha256,
      time: options.setsTimes ? try notes.time(of: cid, record: key) ?? notes.times.commit : nil)
    try write(file) { sink in
      guard isShort else { return _ = try reader.read(cid, each: sink) }
      let bytes = content
      try sink(bytes.span)
    }
  }

  /// The name of a blob's file.
  ///
  /// - Parameters:
  ///   - cid: the blob.
  ///   - key: that of the record that refers to it first; nil if none does.
  ///   - ending: what its type is called.
  private mutating func name(of cid: CID, _ key: [UInt8]?, _ ending: String) throws -> String {
    if options.isReadable, let key {
      for isWhole in [false, true] {
        let name = "\(try notes.name(of: cid, record: key, isWhole: isWhole)).\(ending)"
        if claim("blobs/" + name) { return name }
      }
    }
    return FileNaming.name("\(cid)", ending: ".\(ending)")
  }

  /// As much of a blob as tells its type; nil if it is missing.
  private static func beginning(of cid: CID, in reader: ArchiveReader) throws -> [UInt8]? {
    guard var cursor = try reader.body(of: cid, from: 0) else { return nil }
    var beginning: [UInt8] = []
    while beginning.count < MediaType.signatureLength,
      let piece = try cursor.next(
        upTo: MediaType.signatureLength - beginning.count, { $0.array })
    {
      beginning += piece
    }
    return beginning
  }
}

extension SnapshotExtractor.Report {
  /// Whether there is anything to report of a blob except how much was written.
  fileprivate var saysAnything: Bool {
    !damaged.isEmpty || !refused.isEmpty || !inTheWay.isEmpty || !missing.isEmpty
      || !mistyped.isEmpty
  }
}
