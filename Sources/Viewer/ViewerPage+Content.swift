internal import ATProtocol
internal import Archive
internal import IPLD

extension ViewerPage {
  /// The longest page, in bytes.
  private static let maximumLength: UInt64 = 1 << 20

  /// The page.
  ///
  /// - Throws: `CompressedStreamError` if it was not put into this program as it should be.
  package static func html() throws -> [UInt8] {
    guard let stored = Base64.decode(compressed) else {
      throw CompressedStreamError.damaged(offset: 0)
    }
    var page: [UInt8] = []
    try CompressedStream.zstd.decompress(stored.span, limit: maximumLength) { page += $0.array }
    return page
  }

  /// The largest archive that is put into a page, in bytes: browsers hold all of the page in memory.
  package static let maximumArchive = 64 << 20

  /// The page with an archive in it, which it shows by itself.
  ///
  /// The archive is in an element that browsers do not run, in base64.
  ///
  /// - Throws: as ``html()`` does.
  package static func html(with archive: [UInt8], named name: String) throws -> [UInt8] {
    let page = String(decoding: try html(), as: UTF8.self)
    let shown = name.unicodeScalars.map {
      "&<>\"'".unicodeScalars.contains($0) || $0.value < 32 ? "&#\($0.value);" : "\($0)"
    }.joined()
    let element =
      "<script type=\"application/octet-stream;base64\" id=\"archive\" data-name=\"\(shown)\">"
      + Base64.encode(archive) + "</script>\n"
    return Array(page.replacing("</body>", with: element + "</body>", maxReplacements: 1).utf8)
  }
}
