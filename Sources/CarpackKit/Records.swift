internal import ATProtocol
internal import Extraction
internal import Files
package import IPLD
internal import Snapshots

/// The records of a snapshot, in the order of their keys.
///
/// Reading one may find that it is damaged or missing, so that `for try await` is the way through.
package struct Records: AsyncSequence, Sendable {
  /// A record.
  package struct Element: Sendable {
    /// Its path, `collection/rkey`.
    package let path: String
    /// Its CID.
    package let cid: CID
    /// Its block: DAG-CBOR.
    package let bytes: [UInt8]

    /// What it says.
    ///
    /// - Throws: `DAGCBORError` for a record that is no DAG-CBOR, which is kept all the same.
    package func value() throws(DAGCBORError) -> IPLDValue { try DAGCBORDecoder.decode(bytes.span) }

    /// The same as JSON, indented; nil for a record that cannot be read.
    package var json: String? {
      let rendering = RecordRendering(bytes.span)
      return rendering.isJSON ? String(decoding: rendering.bytes, as: UTF8.self) : nil
    }
  }

  private let snapshot: ArchivedSnapshot

  init(of snapshot: ArchivedSnapshot) { self.snapshot = snapshot }

  /// A way through the records, from the first.
  package func makeAsyncIterator() -> Iterator { Iterator(snapshot) }

  /// A way through the records.
  package struct Iterator: AsyncIteratorProtocol {
    private let snapshot: ArchivedSnapshot
    private let blocks: SnapshotBlocks
    private var walker: MSTWalker?
    private var isOver = false

    init(_ snapshot: ArchivedSnapshot) {
      self.snapshot = snapshot
      blocks = SnapshotBlocks(snapshot, keepsRecords: true)
    }

    /// The next record; nil behind the last, and after an error.
    ///
    /// - Throws: `SnapshotError` for a block that is not in the archive; `ArchiveError` for one
    ///   that is damaged; `RepositoryError` if the commit is none; `BackupError` if the tree breaks
    ///   its rules.
    package mutating func next() async throws -> Element? {
      guard !isOver else { return nil }
      do {
        return try step()
      } catch {
        isOver = true
        throw error
      }
    }

    private mutating func step() throws -> Element? {
      if walker == nil {
        let commit = try body(of: snapshot.snapshot.commit)
        walker = MSTWalker(root: try Commit(commit.span).data)
      }
      while let step = walker?.next() {
        switch step {
        case .node(let cid):
          let node = try body(of: cid)
          walker?.enter(node.span)
        case .record(let cid):
          let path = String(decoding: walker?.key ?? [], as: UTF8.self)
          return Element(path: path, cid: cid, bytes: try body(of: cid))
        }
      }
      if let problem = walker?.problems.first {
        throw BackupError.malformedRepository("the tree of records is malformed: \(problem)")
      }
      return nil
    }

    private func body(of cid: CID) throws -> [UInt8] {
      guard let body = try blocks.body(of: cid) else { throw SnapshotError.blockMissing(cid) }
      return body
    }
  }
}
