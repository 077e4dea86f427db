internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import SystemPackage

/// The media files beside the pages, written when a page first shows them.
struct PageMedia {
  /// The name of their folder.
  static let folder = "media"

  /// The path of a blob's file from the pages; nil, and why, if it is missing.
  typealias Found = (path: String?, why: String)

  private let archived: ArchivedSnapshot
  private let path: FilePath
  private let replacing: Bool
  private var reasons: [CID: BlobLedger.Reason] = [:]
  private var found: [CID: Found] = [:]
  /// Blobs that are damaged, and how.
  private(set) var damaged: [String] = []

  /// How many files were written.
  var count: Int { found.values.count { $0.path != nil } }
  /// How many blobs are missing.
  var missingCount: Int { found.count - count }

  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - pages: the folder of the pages.
  ///   - replacing: whether existing files are replaced.
  init(of archived: ArchivedSnapshot, in pages: FilePath, replacing: Bool) throws {
    (self.archived, self.replacing) = (archived, replacing)
    path = pages.appending(Self.folder)
    for entry in try archived.readable({ try $0.ledger() })?.missing ?? [] {
      reasons[entry.cid] = entry.reason
    }
  }

  /// The file of a blob, which is written if it was not before.
  ///
  /// - Parameters:
  ///   - value: the reference in the record.
  ///   - kinds: beginnings of the media types that it may have; a file of another kind could be
  ///     more than a picture or video.
  mutating func file(_ value: IPLDValue?, _ kinds: [String]) throws -> Found? {
    guard let cid = value?.blobCID else { return nil }
    if let known = found[cid] { return known }
    let type = value?["mimeType"]?.string ?? ""
    guard kinds.contains(where: type.hasPrefix) else {
      return (nil, "its media type, \(type), is not shown here")
    }
    do {
      found[cid] =
        try archived.reader.section(of: cid) == nil
        ? (nil, reasons[cid]?.sentence ?? "it is not in the archive") : (write(cid, type), "")
    } catch let error where error.isLoss {
      damaged.append("\(cid): \(error)")
      found[cid] = (nil, "it is damaged")
    }
    return found[cid]
  }

  /// Writes a blob, and returns the path of its file from the pages.
  private func write(_ cid: CID, _ type: String) throws -> String {
    try BlobFolder.make(path.string)
    let ending = MediaType.fileExtension(of: type) ?? "bin"
    let name = "\(cid).\(ending)"
    let reader = archived.reader
    try AtomicFile.save(to: path.appending(name), replacing: replacing) { sink in
      try reader.read(cid, each: sink)
    }
    return "\(Self.folder)/\(name)"
  }
}
