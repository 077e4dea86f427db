internal import ATProtocol
internal import Archive
package import Files
internal import IPLD
internal import Repository
package import Snapshots
package import SystemPackage

/// Writes the records of a snapshot as tables, one CSV file a collection.
///
/// RFC 4180 in UTF-8, with a header line. A file has its name once all of it is written.
package struct CSVExporter {
  /// A table that was written.
  package struct Table: Equatable, Sendable {
    /// The name of the file.
    package let name: String
    /// How many records it has.
    package let rows: Int
  }

  /// What came of it.
  package struct Report: Sendable {
    /// The tables, in the order of the collections.
    package var tables: [Table] = []
    /// How many records are not in the archive, so that only their names are in a table.
    package var missing = 0
    /// How many parts of the tree are not in the archive, so that their records are in no table.
    package var missingNodes = 0
    /// Why there may be records that are in no table; nil if all are.
    package var flaw: String?
  }

  /// A table that is being written.
  private struct Open {
    /// How many bytes are gathered before they are written.
    private static let piece = 1 << 18

    let collection: ArraySlice<UInt8>?
    private let table: CSVTable
    private let name: String
    let file: AtomicFile
    private let storage: FileStorage
    private var content: [UInt8]
    private var offset: UInt64 = 0
    private var rows = 0

    init(_ collection: ArraySlice<UInt8>?, in folder: FilePath, _ replacing: Bool) throws {
      self.collection = collection
      table = CSVTable(of: collection.map { String(decoding: $0, as: UTF8.self) } ?? "")
      name = FileNaming.component(collection, ending: ".csv", for: .any)
      file = try AtomicFile(folder.appending(name), replacing: replacing)
      storage = try file.storage()
      content = table.header
    }

    mutating func append(_ record: TableRecord) throws {
      content += table.row(of: record)
      rows += 1
      if content.count >= Self.piece { try flush() }
    }

    private mutating func flush() throws {
      let pending = content
      try storage.write(pending.span, at: offset)
      offset += UInt64(pending.count)
      content.removeAll(keepingCapacity: true)
    }

    mutating func finish() throws -> Table {
      try flush()
      try file.publish()
      return Table(name: name, rows: rows)
    }
  }

  /// Writes the tables of a snapshot.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - folder: where; it is made if it is not there.
  ///   - replacing: whether files that are there are replaced.
  /// - Throws: ``BackupError`` if a file is there, or cannot be written; what reading the archive
  ///   throws. Nothing of a table that was not finished stays.
  package static func export(
    _ archived: ArchivedSnapshot, to folder: FilePath, replacing: Bool,
    observer: @escaping Progress.Observer
  ) throws -> Report {
    try BlobFolder.make(folder.string)
    var report = Report()
    var open: Open?
    let did = archived.snapshot.did
    let times = RecordTimes(of: archived.snapshot)
    do {
      let contents = try SnapshotBlocks(archived, keepsRecords: true, observer: observer)
        .contents { record, body in
          let collection = FileNaming.parts(of: record.key).collection
          if open == nil || open?.collection != collection {
            if let table = try open?.finish() { report.tables.append(table) }
            open = nil
            open = try Open(collection, in: folder, replacing)
          }
          if record.length == nil { report.missing += 1 }
          let row = TableRecord(record.key, record.cid, body, of: did, times)
          try open?.append(row)
        }
      if let table = try open?.finish() { report.tables.append(table) }
      report.flaw = contents.flaw
      report.missingNodes = contents.tree.missingNodes.count
      if contents.tree.commit == nil { report.missingNodes += 1 }
      return report
    } catch {
      open?.file.discard()
      throw error
    }
  }
}

extension TableRecord {
  /// A record by its key and its block, which is empty if it is not in the archive.
  fileprivate init(
    _ key: [UInt8], _ cid: CID, _ block: Span<UInt8>, of did: DID, _ times: RecordTimes
  ) {
    // The row of a record that cannot be read has its name and CID, and nothing else.
    let value = try? DAGCBORDecoder.decode(block)
    let time = times.time(of: key, createdAt: value?["createdAt"]?.string)
    self.init(
      uri: "at://\(did)/\(String(decoding: key, as: UTF8.self))", cid: cid,
      created: value?["createdAt"]?.string ?? time?.text ?? "", value: value,
      json: value?.json() ?? "")
  }
}
