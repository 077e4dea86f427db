internal import ATProtocol
internal import Archive
package import Files
internal import IPLD
package import Snapshots
package import SystemPackage

/// Writes the records of a snapshot as tables, one CSV file per collection.
///
/// RFC 4180 in UTF-8, with a header line. A file has its name once all of it is written.
package struct CSVExporter {
  /// A table that was written: the name of its file, and how many records it has.
  package typealias Table = (name: String, rows: Int)

  /// How many bytes are collected before they are written.
  private static let piece = 1 << 18

  private let folder: FilePath
  private let replacing: Bool
  private var tables: [Table] = []
  /// The table that is being written: its collection, its columns and its file.
  private var open:
    (collection: ArraySlice<UInt8>?, columns: [Column], file: AtomicFile, storage: FileStorage)?
  /// The part of it that is not written yet.
  private var content: [UInt8] = []

  /// Writes the tables of a snapshot.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - folder: the folder for the tables; it is made if it does not exist.
  ///   - replacing: whether existing files are replaced.
  /// - Returns: The tables, in the order of the collections; and the repository, which says what of
  ///   it could not be written: of a record that is not in the archive, a table has the name.
  /// - Throws: ``BackupError`` if a file is there, or cannot be written; what reading the archive
  ///   throws. Nothing of a table that was not finished stays.
  package static func export(
    _ archived: ArchivedSnapshot, to folder: FilePath, replacing: Bool,
    observer: @escaping Progress.Observer
  ) throws -> (tables: [Table], contents: LaidOutRepository) {
    try BlobFolder.make(folder.string)
    var exporter = CSVExporter(folder: folder, replacing: replacing)
    let (did, times) = (archived.snapshot.did, RecordTimes(of: archived.snapshot))
    do {
      let blocks = SnapshotBlocks(archived, keepsRecords: true, observer: observer)
      let contents = try blocks.contents { record, body in
        // The row of a record that cannot be read has its name and CID, and nothing else.
        let value = try? DAGCBORDecoder.decode(body)
        let said = value?["createdAt"]?.string
        let time = times.time(of: record.key, createdAt: said)
        // As the record writes it, if that is its date.
        let created = said.flatMap { time != nil && Moment($0) == time ? $0 : nil } ?? time?.text
        let uri = "at://\(did)/\(String(decoding: record.key, as: UTF8.self))"
        try exporter.add(
          [uri, "\(record.cid)", created ?? ""], value,
          to: FileNaming.parts(of: record.key).collection)
      }
      try exporter.finishTable()
      return (exporter.tables, contents)
    } catch {
      exporter.open?.file.discard()
      throw error
    }
  }

  private mutating func add(
    _ cells: [String], _ value: IPLDValue?, to collection: ArraySlice<UInt8>?
  ) throws {
    if open == nil || open?.collection != collection {
      try finishTable()
      let name = FileNaming.component(collection, ending: ".csv", for: .any)
      let file = try AtomicFile(folder.appending(name), replacing: replacing)
      let columns = Self.columns(of: String(decoding: collection ?? [], as: UTF8.self))
      open = (collection, columns, file, try file.storage())
      tables.append((name, 0))
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
