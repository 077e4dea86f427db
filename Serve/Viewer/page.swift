// swift-format-ignore-file
// Written by `make viewer` from Serve/Viewer.

/// The page that shows archives.
package enum ViewerPage {
  /// The page, compressed by zstd, in base64.
  static let compressed = "@PAGE@"
}
