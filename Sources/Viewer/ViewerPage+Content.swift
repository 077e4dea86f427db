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
}
