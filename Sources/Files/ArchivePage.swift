internal import ATProtocol
internal import Archive
internal import IPLD

/// An HTML page with an archive inside, as `carpack view --page` writes it: the archive lies in an
/// element that browsers do not run, in base64.
///
/// ```
/// <!doctype html> … <script type="application/octet-stream;base64" id="archive" data-name="…">…</script> … </html>
/// ```
package enum ArchivePage {
  /// The largest archive that is put into a page, in bytes: browsers hold all of the page in
  /// memory.
  package static let maximumArchive = 64 << 20
  /// How many bytes a page may have beside its archive.
  private static let maximumRest = 1 << 20

  private static let beginning = Array("<!doctype html".utf8)
  private static let opening = #"<script type="application/octet-stream;base64" id="archive" "#
  private static let closing = "</script>"

  /// The element.
  ///
  /// - Parameters:
  ///   - archive: The bytes of the archive.
  ///   - name: Its name on the page.
  package static func element(_ archive: [UInt8], named name: String) -> String {
    let shown = name.unicodeScalars.map {
      "&<>\"'".unicodeScalars.contains($0) || $0.value < 32 ? "&#\($0.value);" : "\($0)"
    }.joined()
    return "\(opening)data-name=\"\(shown)\">\(Base64.encode(archive))\(closing)\n"
  }

  /// The archive in a page; nil if the file is not a page, or has none.
  static func archive(in file: MappedFile) -> MappedFile? {
    let limit = maximumArchive / 3 * 4 + 4 + maximumRest
    guard !file.isFetched, beginning.count...limit ~= file.count else { return nil }
    return file.withBytes { bytes in
      for (place, letter) in beginning.enumerated() where bytes[place] | 0x20 != letter | 0x20 {
        return nil
      }
      // The element stands at the end; what looks like one before it belongs to the page's script.
      guard let start = place(of: opening, in: bytes, before: bytes.count),
        let name = bytes.firstIndex(of: UInt8(ascii: ">"), from: start),
        let end = place(of: closing, in: bytes, before: bytes.count, from: name)
      else { return nil }
      let text = bytes.extracting(name + 1..<end).array
      return Base64.decode(String(decoding: text, as: UTF8.self)).map { MappedFile(copying: $0) }
    }
  }

  /// Where the last occurrence of a text begins.
  private static func place(
    of text: String, in bytes: Span<UInt8>, before end: Int, from start: Int = 0
  ) -> Int? {
    let wanted = Array(text.utf8)
    var place = end - wanted.count
    while place >= start {
      if bytes[place] == wanted[0],
        wanted.indices.allSatisfy({ bytes[place + $0] == wanted[$0] })
      {
        return place
      }
      place -= 1
    }
    return nil
  }
}

extension Span<UInt8> {
  fileprivate func firstIndex(of byte: UInt8, from start: Int) -> Int? {
    (start..<count).first { self[$0] == byte }
  }
}
