package import ATProtocol
internal import Archive
internal import Files
package import IPLD
package import SystemPackage

/// What a server has given to the account's owner, on its way into the archive.
///
/// It waits in a file without a name, so that nothing is in the archive before all has arrived.
package struct ReceivedPrivateData: Sendable {
  /// What the snapshot will say.
  private(set) var data: PrivateData
  /// What could not be fetched this time: a sentence each.
  package private(set) var failures: [String] = []
  /// What the server does not provide, which is new: the names of the methods.
  package private(set) var notGiven: [String] = []
  private let earlier: PrivateData?
  private let file: TemporaryFile
  /// The valid length of the file.
  private var length = 0

  /// Nothing yet.
  ///
  /// - Throws: ``BackupError`` if there is no room for a temporary file.
  package init(of did: DID, in folder: FilePath, after earlier: PrivateData?) throws {
    data = PrivateData(of: did)
    self.earlier = earlier
    file = try TemporaryFile(in: folder)
  }

  /// Whether it says something that the archive does not say.
  package var isNews: Bool { data != earlier }

  /// Keeps an answer, or the beginning of one.
  ///
  /// - Throws: ``BackupError`` if there is no room.
  /// - Returns: the blocks of its pieces.
  package mutating func spool(_ bytes: [UInt8]) async throws -> [CID] {
    let file = file
    let new = try await onOwnQueue {
      try stride(from: 0, to: bytes.count, by: PrivateData.maximumPiece).map { start in
        let end = min(start + PrivateData.maximumPiece, bytes.count)
        let block = try PrivateData.block(Array(bytes[start..<end]))
        try file.append(block)
        return block.cid
      }
    }
    length = file.count
    return new
  }

  /// Discards what has been stored since.
  package mutating func goBack(to begin: ReceivedPrivateData) throws {
    length = begin.length
    try file.truncate(to: length)
  }

  /// Takes the result of a method.
  package mutating func take(_ entry: PrivateData.Entry) {
    let old = earlier?.entries.first { $0.endpoint == entry.endpoint }
    if let fault = entry.fault {
      if fault.kind != .notGiven {
        failures.append(fault.why)
      } else if old?.fault?.kind != .notGiven {
        notGiven.append(entry.endpoint)
      }
    }
    guard let old else { return data.entries.append(entry) }
    // Only something whole takes the place of what is here, and the time alone is not news.
    let isBetter = entry.isWhole || old.answers.isEmpty
    let saysTheSame =
      entry.answers == old.answers && entry.contentType == old.contentType
      && entry.fault?.kind == old.fault?.kind
    data.entries.append(isBetter && !saysTheSame ? entry : old)
  }

  /// Appends the blocks that the data needs, and its list.
  ///
  /// - Throws: what the writer throws.
  func append(to writer: inout ArchiveWriter) throws {
    let needed = Set(data.pieces)
    try file.forEachBlock { cid, body in
      if needed.contains(cid) { try writer.append(cid, body) }
    }
    let list = try data.block()
    try writer.append(list.cid, list.bytes.span)
  }
}
