internal import ATProtocol
internal import Archive
internal import IPLD

/// A repository as a CAR in canonical order: the commit, then the tree in pre-order, each record after the entry that names it; every block once.
///
/// It is the order that lets a reader follow a stream with little memory
/// ([AT Protocol, Repository, "CAR File Serialization"](https://atproto.com/specs/repository#car-file-serialization)).
enum CanonicalExport {
  /// Writes the repository in `car` in this order.
  ///
  /// - Throws: `CARError` and `RepositoryError` for one that is none; ``BackupError`` if there is no room.
  static func write(_ car: MappedFile) throws -> TemporaryFile {
    let file = try TemporaryFile()
    try car.withBytes { bytes throws in
      let header = try CARHeader(bytes)
      var table = BlockTable()
      var cursor = CARCursor(header: header, payload: 0..<bytes.count)
      while let (section, cid) = try cursor.next(in: bytes) {
        table.insert(section, cid, in: bytes)
      }
      guard let root = header.roots.first else { throw RepositoryError.noRoot }
      var prefix: [UInt8] = []
      func put(_ cid: CID, _ place: Int) throws {
        guard table.marks(place) == 0 else { return }
        table.mark(place, 1)
        let body = bytes.extracting(table.body(place, in: bytes))
        prefix.removeAll(keepingCapacity: true)
        CARWriter.appendPrefix(cid, bodyLength: UInt64(body.count), to: &prefix)
        try file.write(prefix.span)
        try file.write(body)
      }
      CARWriter.appendHeader(roots: [root], to: &prefix)
      try file.write(prefix.span)
      guard let place = table.place(of: root, in: bytes) else {
        throw RepositoryError.commitMissing(root)
      }
      try put(root, place)
      var walker = MSTWalker(root: try Commit(bytes.extracting(table.body(place, in: bytes))).data)
      while let step = walker.next() {
        switch step {
        case .node(let cid):
          guard let place = table.place(of: cid, in: bytes) else {
            walker.skip()
            continue
          }
          if table.marks(place) != 0 {
            walker.skipRepeated()
          } else {
            try put(cid, place)
            walker.enter(bytes.extracting(table.body(place, in: bytes))) {
              table.places(of: $0, in: bytes)
            }
          }
        case .record(let cid):
          if let place = table.place(of: cid, in: bytes) { try put(cid, place) }
        }
      }
    }
    return file
  }
}
