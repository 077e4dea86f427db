internal import ATProtocol
internal import Archive
internal import Files
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

  /// The page with an archive in it, which it shows by itself.
  ///
  /// - Throws: as ``html()`` does.
  package static func html(with archive: [UInt8], named name: String) throws -> [UInt8] {
    let page = String(decoding: try html(), as: UTF8.self)
    let element = ArchivePage.element(archive, named: name)
    return Array(page.replacing("</body>", with: element + "</body>", maxReplacements: 1).utf8)
  }
}
