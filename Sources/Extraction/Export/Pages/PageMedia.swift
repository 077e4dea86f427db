internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import SystemPackage

/// The media files beside the pages, written as pages come to them.
struct PageMedia {
  /// The name of their folder.
  static let folder = "media"

  /// The path of a blob's file from the pages; nil, and why, if it is not there.
  typealias Found = (path: String?, why: String)

  private let archived: ArchivedSnapshot
  private let path: FilePath
  private let replacing: Bool
  private let reasons: [CID: BlobLedger.Reason]
  private var known: [CID: String] = [:]
  /// How many files were written.
  private(set) var count = 0
  /// How many blobs are not there.
  private(set) var missing: Set<CID> = []
  /// Blobs that are damaged, and how.
  private(set) var damaged: [String] = []

  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - pages: the folder of the pages.
  ///   - replacing: whether files that are there are replaced.
  init(of archived: ArchivedSnapshot, in pages: FilePath, replacing: Bool) throws {
    self.archived = archived
    self.replacing = replacing
    path = pages.appending(Self.folder)
    var reasons: [CID: BlobLedger.Reason] = [:]
    for entry in try archived.readable({ try $0.ledger() }) ?? [] {
      reasons[entry.cid] = entry.reason
    }
    self.reasons = reasons
  }

  /// The file of a blob, which is written if it was not before.
  ///
  /// - Parameters:
  ///   - value: the reference in the record.
  ///   - kinds: beginnings of media types that it may have; a file of another kind could do more
  ///     than be looked at.
  mutating func file(_ value: IPLDValue?, _ kinds: String...) throws -> Found? {
    guard let cid = Self.cid(value) else { return nil }
    if let name = known[cid] { return ("\(Self.folder)/\(name)", "") }
    let type = value?["mimeType"]?.string ?? ""
    guard !missing.contains(cid) else { return (nil, reason(cid)) }
    guard kinds.contains(where: type.hasPrefix) else {
      return (nil, "its media type, \(type), is not shown here")
    }
    do {
      guard let section = try archived.reader.section(of: cid) else {
        missing.insert(cid)
        return (nil, reason(cid))
      }
      let name = try write(section, type)
      known[cid] = name
      return ("\(Self.folder)/\(name)", "")
    } catch let error as ArchiveError {
      damaged.append("\(cid): \(error)")
      missing.insert(cid)
      return (nil, "it is damaged")
    }
  }

  private func reason(_ cid: CID) -> String { reasons[cid]?.sentence ?? "it is not in the archive" }

  private mutating func write(_ section: Section, _ type: String) throws -> String {
    let cid = section.cid
    try BlobFolder.make(path.string)
    let ending = MediaType.fileExtension(of: type) ?? "bin"
    let name = "\(cid)\(ending.hasPrefix(".") ? "" : ".")\(ending)"
    let reader = archived.reader
    try ExportedFile.write(name, in: path, replacing: replacing) { file in
      try reader.read(cid) { try file.append($0) }
    }
    count += 1
    return name
  }

  /// What a reference to a blob names, in the form of today or the legacy one.
  private static func cid(_ value: IPLDValue?) -> CID? {
    guard let value else { return nil }
    if let link = value["ref"]?.link { return link }
    return value["cid"]?.string.flatMap { try? CID($0) }
  }
}
