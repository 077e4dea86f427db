/// Which ending a blob's file gets: by the media type its record names, if the content does not say
/// otherwise.
package enum MediaType {
  /// The ending for a media type; nil for one that is not known.
  package static func fileExtension(of mimeType: String) -> String? {
    let essence = mimeType.lowercased().prefix { $0 != ";" && $0 != " " }
    return extensions[String(essence)]
  }

  private static let extensions = [
    "image/jpeg": "jpg", "image/jpg": "jpg", "image/png": "png", "image/gif": "gif",
    "image/webp": "webp", "image/avif": "avif", "image/heic": "heic", "image/heif": "heif",
    "image/svg+xml": "svg", "image/bmp": "bmp", "image/tiff": "tiff", "image/jxl": "jxl",
    "image/x-icon": "ico", "image/apng": "png",
    "video/mp4": "mp4", "video/quicktime": "mov", "video/webm": "webm", "video/mpeg": "mpeg",
    "video/x-matroska": "mkv", "video/mp2t": "ts", "video/ogg": "ogv",
    "audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/ogg": "ogg", "audio/wav": "wav",
    "audio/flac": "flac", "audio/aac": "aac", "audio/webm": "weba",
    "text/plain": "txt", "text/vtt": "vtt", "text/html": "html", "text/markdown": "md",
    "text/css": "css", "text/csv": "csv", "application/json": "json", "application/pdf": "pdf",
    "application/zip": "zip", "application/gzip": "gz", "application/xml": "xml",
    "text/xml": "xml", "application/vnd.ipld.car": "car", "application/wasm": "wasm",
    "font/woff2": "woff2", "application/octet-stream": "bin",
  ]

  /// How many bytes ``signature(of:)`` looks at.
  package static let signatureLength = 64

  /// The ending that the first bytes of a content tell of; nil for content without a known
  /// signature.
  package static func signature(of bytes: Span<UInt8>) -> String? {
    func at(_ offset: Int, _ text: StaticString) -> Bool {
      let count = text.utf8CodeUnitCount
      guard bytes.count >= offset + count else { return false }
      return text.withUTF8Buffer { buffer in
        for index in 0..<count where unsafe buffer[index] != bytes[offset + index] { return false }
        return true
      }
    }
    func starts(_ first: UInt8...) -> Bool {
      guard bytes.count >= first.count else { return false }
      for index in first.indices where bytes[index] != first[index] { return false }
      return true
    }
    if starts(0xff, 0xd8, 0xff) { return "jpg" }
    if starts(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a) { return "png" }
    if at(0, "GIF87a") || at(0, "GIF89a") { return "gif" }
    if at(0, "RIFF") && at(8, "WEBP") { return "webp" }
    if at(0, "RIFF") && at(8, "WAVE") { return "wav" }
    if at(4, "ftyp") {
      if at(8, "avif") || at(8, "avis") { return "avif" }
      if at(8, "heic") || at(8, "heix") || at(8, "mif1") { return "heic" }
      if at(8, "qt  ") { return "mov" }
      if at(8, "M4A ") { return "m4a" }
      return "mp4"
    }
    if starts(0x1a, 0x45, 0xdf, 0xa3) { return "webm" }
    if at(0, "%PDF-") { return "pdf" }
    if at(0, "OggS") { return "ogg" }
    if at(0, "fLaC") { return "flac" }
    if at(0, "ID3") { return "mp3" }
    if at(0, "WEBVTT") { return "vtt" }
    if starts(0x50, 0x4b, 0x03, 0x04) { return "zip" }
    if at(0, "BM") && bytes.count >= 14 && bytes[6] == 0 && bytes[7] == 0 { return "bmp" }
    if starts(0xff, 0x0a) || starts(0, 0, 0, 0x0c, 0x4a, 0x58, 0x4c, 0x20) { return "jxl" }
    if starts(0x49, 0x49, 0x2a, 0) || starts(0x4d, 0x4d, 0, 0x2a) { return "tiff" }
    return nil
  }

  /// Endings whose content may carry each other's signature, for they share a container.
  private static let kin: [Set<String>] = [
    ["mp4", "mov", "m4a", "heic", "heif", "avif"], ["webm", "mkv", "weba"], ["ogg", "ogv"],
    ["heic", "heif", "avif"], ["zip", "bin"],
  ]

  /// The ending for a blob.
  ///
  /// The media type decides, unless the content has the signature of something else, as when a
  /// server or an app named the wrong one; then the content decides. Without either it is `bin`.
  ///
  /// - Parameters:
  ///   - mimeType: what the record says.
  ///   - beginning: the first `signatureLength` bytes of the content, or all of them.
  package static func fileExtension(mimeType: String?, beginning: Span<UInt8>) -> String {
    let named = mimeType.flatMap(fileExtension(of:))
    guard let found = signature(of: beginning) else { return named ?? "bin" }
    guard let named, named != "bin", named != found else { return found }
    return kin.contains { $0.contains(named) && $0.contains(found) } ? named : found
  }
}
