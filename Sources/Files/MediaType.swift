internal import IPLD

/// The ending of a blob's file: that of the media type in its record, unless the content shows
/// another type.
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

  /// What contents begin with, of which the first that fits counts: a character for each byte, `?`
  /// for any.
  private static let signatures: [(beginning: String, ending: String)] = [
    ("\u{ff}\u{d8}\u{ff}", "jpg"), ("\u{89}PNG\r\n\u{1a}\n", "png"), ("GIF87a", "gif"),
    ("GIF89a", "gif"), ("RIFF????WEBP", "webp"), ("RIFF????WAVE", "wav"),
    ("????ftypavif", "avif"), ("????ftypavis", "avif"), ("????ftypheic", "heic"),
    ("????ftypheix", "heic"), ("????ftypmif1", "heic"), ("????ftypqt  ", "mov"),
    ("????ftypM4A ", "m4a"), ("????ftyp", "mp4"), ("\u{1a}E\u{df}\u{a3}", "webm"),
    ("%PDF-", "pdf"), ("OggS", "ogg"), ("fLaC", "flac"), ("ID3", "mp3"), ("WEBVTT", "vtt"),
    ("PK\u{3}\u{4}", "zip"), ("BM????\0\0??????", "bmp"), ("\u{ff}\n", "jxl"),
    ("\0\0\0\u{c}JXL ", "jxl"), ("II*\0", "tiff"), ("MM\0*", "tiff"),
  ]

  /// The ending for content with these first bytes; nil for content without a known signature.
  package static func signature(of bytes: Span<UInt8>) -> String? {
    let bytes = bytes.array(0..<min(bytes.count, signatureLength))
    return signatures.first { beginning, _ in
      let signs = beginning.unicodeScalars
      return bytes.count >= signs.count
        && zip(signs, bytes).allSatisfy { $0 == "?" || $0.value == UInt32($1) }
    }?.ending
  }

  /// Endings whose content may carry each other's signature, because they share a container.
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
