internal import ATProtocol
internal import Archive
internal import Extraction
internal import Files
package import IPLD
internal import Repository
internal import Snapshots

/// The records of a snapshot, in the order of their keys.
///
/// Reading a record may show that it is damaged or missing, so use `for try await`.
public struct Records: AsyncSequence, Sendable {
  /// A record.
  public struct Element: Sendable {
    /// Its path, `collection/rkey`.
    public let path: String
    /// Its CID.
    public let cid: CID
    /// Its block: DAG-CBOR.
    public let bytes: [UInt8]

    /// The record's value.
    ///
    /// - Throws: `DAGCBORError` for a record that is not DAG-CBOR, which is kept anyway.
    public func value() throws(DAGCBORError) -> IPLDValue { try DAGCBORDecoder.decode(bytes.span) }

    /// The value as JSON, indented; nil for a record that cannot be read.
    public var json: String? {
      let rendering = RecordRendering(bytes.span)
      return rendering.isJSON ? String(decoding: rendering.bytes, as: UTF8.self) : nil
    }
  }

  private let snapshot: ArchivedSnapshot

  init(of snapshot: ArchivedSnapshot) { self.snapshot = snapshot }

  /// A way through the records, from the first.
  public func makeAsyncIterator() -> Iterator { Iterator(snapshot) }

  /// A way through the records.
  public struct Iterator: AsyncIteratorProtocol {
    private let snapshot: ArchivedSnapshot
    private var fold: TreeFold<LaidOutBlocks>?
    private var isOver = false

    init(_ snapshot: ArchivedSnapshot) { self.snapshot = snapshot }

    /// The next record; nil after the last, and after an error.
    ///
    /// - Throws: `SnapshotError` for a block that is not in the archive; `ArchiveError` for one
    ///   that is damaged; `RepositoryError` if the commit is malformed; `BackupError` if the tree
    ///   breaks its rules.
    public mutating func next() async throws -> Element? {
      guard !isOver else { return nil }
      do {
        return try step()
      } catch {
        isOver = true
        throw error
      }
    }

    private mutating func step() throws -> Element? {
      if fold == nil {
        let blocks = try SnapshotBlocks(snapshot, keepsRecords: true).allLaidOut()
        let root = snapshot.snapshot.commit
        guard blocks.number(of: root) != nil else { throw try absence(of: root) }
        fold = TreeFold(blocks, root: try blocks.commit(root).commit.data)
      }
      while let step = fold?.next() {
        switch step {
        case .node, .subtree: continue
        case .missingNode(let cid), .record(let cid, nil): throw try absence(of: cid)
        case .record(let cid, let number?):
          let bytes = fold?.source.withBody(number) { $0.array } ?? []
          return Element(
            path: String(decoding: fold?.key ?? [], as: UTF8.self), cid: cid, bytes: bytes)
        }
      }
      if let problem = fold?.walker.problems.first {
        throw BackupError.malformedRepository("the tree of records is malformed: \(problem)")
      }
      return nil
    }

    /// Why a block is missing.
    private func absence(of cid: CID) throws -> any Error {
      _ = try snapshot.reader.body(of: cid)
      return snapshot.snapshot.isComplete
        ? SnapshotError.blockMissing(cid) : SnapshotError.notPacked(cid)
    }
  }
}
