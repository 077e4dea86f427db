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
  /// A table that was written: the name of its file, and how many records it has.
  package typealias Table = (name: String, rows: Int)

  /// The result.
  package struct Report: Sendable {
    /// The tables, in the order of the collections.
    package let tables: [Table]
    /// How many records are not in the archive, so that only their names are in a table.
    package let missing: Int
    /// How many parts of the tree are not in the archive, so that their records are in no table.
    package let missingNodes: Int
    /// Why there may be records that are in no table; nil if all are.
    package let flaw: String?
  }

  /// How many bytes are gathered before they are written.
  private static let piece = 1 << 18

  private let folder: FilePath
  private let replacing: Bool
  private var tables: [Table] = []
  /// The columns and the file of the table that is being written.
  private var open: (columns: [Column], file: AtomicFile, storage: FileStorage)?
  /// What of it is not written yet.
  private var content: [UInt8] = []
  private var collection: ArraySlice<UInt8>?

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
    var exporter = CSVExporter(folder: folder, replacing: replacing)
    let (did, times) = (archived.snapshot.did, RecordTimes(of: archived.snapshot))
    do {
      let blocks = SnapshotBlocks(archived, keepsRecords: true, observer: observer)
      let contents = try blocks.contents { record, body in
        // The row of a record that cannot be read has its name and CID, and nothing else.
        let value = try? DAGCBORDecoder.decode(body)
        let created =
          value?["createdAt"]?.string ?? times.time(of: record.key, createdAt: nil)?.text
        let uri = "at://\(did)/\(String(decoding: record.key, as: UTF8.self))"
        try exporter.add(
          [uri, "\(record.cid)", created ?? ""], value,
          to: FileNaming.parts(of: record.key).collection)
      }
      try exporter.finishTable()
      let tree = contents.tree
      return Report(
        tables: exporter.tables, missing: tree.missingRecordCount,
        missingNodes: tree.missingNodes.count + (tree.commit == nil ? 1 : 0), flaw: contents.flaw)
    } catch {
      exporter.open?.file.discard()
      throw error
    }
  }

  private mutating func add(
    _ cells: [String], _ value: IPLDValue?, to collection: ArraySlice<UInt8>?
  ) throws {
    if open == nil || self.collection != collection {
      try finishTable()
      let name = FileNaming.component(collection, ending: ".csv", for: .any)
      let file = try AtomicFile(folder.appending(name), replacing: replacing)
      let columns = Self.columns(of: String(decoding: collection ?? [], as: UTF8.self))
      open = (columns, file, try file.storage())
      tables.append((name, 0))
      self.collection = collection
      content = Self.row(["uri", "cid", "created"] + columns.map(\.name))
    }
    content += Self.row(cells + (open?.columns ?? []).map { $0.content(value) })
    tables[tables.count - 1].rows += 1
    if content.count >= Self.piece { try flush() }
  }

  private mutating func flush() throws {
    let pending = content
    content.removeAll(keepingCapacity: true)
    if let storage = open?.storage { try storage.write(pending.span, at: storage.size) }
  }

  private mutating func finishTable() throws {
    try flush()
    try open?.file.publish()
    open = nil
  }
}
