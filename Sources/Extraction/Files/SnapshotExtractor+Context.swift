internal import ATProtocol
internal import Files
internal import IPLD
internal import Snapshots

/// Writing what app views have shown of others: `context/people.json`, `context/posts.json`, and
/// the thumbnails.
extension SnapshotExtractor {
  private static let folder = "context"

  mutating func writeContext() throws {
    var pieces: [CID] = []
    var seen: Set<CID> = []
    do {
      report.lacksContext = try archived.context() == nil
      guard !report.lacksContext else { return }
      try archived.forEachContextItem { item in
        for piece in item.thumbnails where seen.insert(piece).inserted { pieces.append(piece) }
      }
    } catch let error where error.isLoss {
      return report.damaged.append(("context", "\(error)"))
    }
    for (name, isPerson) in [("people.json", true), ("posts.json", false)] {
      let archived = archived
      try write(OutputFile(components: [Self.folder, name])) { sink in
        var json = JSONWriter(pretty: true)
        json.beginArray()
        try archived.forEachContextItem { item in
          guard item.isPerson == isPerson else { return }
          item.write(to: &json, file: Self.thumbnail)
          let bytes = json.takeBytes()
          try sink(bytes.span)
        }
        json.endArray()
        json.newline()
        let bytes = json.takeBytes()
        try sink(bytes.span)
      }
    }
    for piece in pieces {
      let archived = archived
      try write(OutputFile(components: [Self.folder, Self.thumbnail(piece)])) { sink in
        let bytes = try archived.contextPiece(piece)
        try sink(bytes.span)
      }
    }
  }

  /// The name of a thumbnail's file: thumbnails have no CID of their own, so it is that of the
  /// block.
  private static func thumbnail(_ piece: CID) -> String { "thumbnail-\(piece)" }
}

extension ContextItem {
  /// The pieces with thumbnails.
  fileprivate var thumbnails: [CID] {
    switch content {
    case .person(let person): person.avatar.map { [$0.piece] } ?? []
    case .post(let post): post.thumbnails.map(\.piece)
    case .absent: []
    }
  }
}
