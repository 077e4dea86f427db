package import ATProtocol
internal import IPLD
package import SystemPackage

/// The names of files that are extracted from an archive.
///
/// Collections and record keys are used as they are if that is a safe name, whatever they spell.
/// Bytes that are not safe are escaped, each as `%` and two hexadecimal digits; no identifier holds
/// a `%`, so that no two names meet, and the escape can be undone. A name that would be longer than
/// a file system allows (record keys go up to 512 characters, and names up to 255 bytes) keeps its
/// first 120 bytes, followed by `+` and the SHA-256 of the whole in base 32. No identifier
/// holds a `+` either.
package enum FileNaming {
  /// The ending of an archive's name.
  package static let archiveEnding = ".car.zst"

  /// The longest name that is used as it is, in bytes, with its ending.
  ///
  /// File systems allow 255; some of it is left for others.
  package static let maximumLength = 240
  private static let keptLength = 120

  /// The file systems for which a name must be valid.
  package enum Target {
    /// The file systems of Unix: everything but a slash and NUL, and what a terminal or a shell
    /// would mistake.
    case unix
    /// Also Windows and exFAT: no colon, no name of a device, no dot at the end.
    case any
  }

  /// A name with an ending, shortened if it has to be.
  package static func name(_ text: String, ending: String = "") -> String {
    guard text.utf8.count + ending.utf8.count > maximumLength else { return text + ending }
    let digest = SHA256.digest(of: Array(text.utf8).span)
    return "\(beginning(of: text))+\(Base32.encode(digest.bytes.span))\(ending)"
  }

  /// The first characters of a text, as many as fit into ``keptLength`` bytes.
  private static func beginning(of text: some StringProtocol) -> String {
    var kept = String.UnicodeScalarView()
    var length = 0
    for scalar in text.unicodeScalars {
      length += UTF8.width(scalar)
      guard length <= keptLength else { break }
      kept.append(scalar)
    }
    return String(kept)
  }

  /// The file beside an archive that has its name with another ending.
  package static func beside(_ archive: FilePath, _ ending: String) -> FilePath {
    let text = archive.string
    let known = archiveEnding
    return FilePath((text.hasSuffix(known) ? String(text.dropLast(known.count)) : text) + ending)
  }

  /// The two parts of a key of the tree, at its first slash; the collection is nil if there is no
  /// slash.
  package static func parts(of key: [UInt8]) -> (
    collection: ArraySlice<UInt8>?, rest: ArraySlice<UInt8>
  ) {
    guard let slash = key.firstIndex(of: UInt8(ascii: "/")) else { return (nil, key[...]) }
    return (key[..<slash], key[(slash + 1)...])
  }

  /// The name for a part of a key.
  ///
  /// - Parameters:
  ///   - part: its bytes, which may be anything; nil for the collection of a key that has none.
  ///   - ending: what follows.
  ///   - target: the file systems for which the name must be valid.
  package static func component(
    _ part: ArraySlice<UInt8>?, ending: String = "", for target: Target = .unix
  ) -> String {
    // Neither is the escape of anything: no digits follow.
    guard let part else { return "%-" + ending }
    guard !part.isEmpty else { return "%" + ending }
    var bytes: [UInt8] = []
    for (place, byte) in part.enumerated() {
      // A dot in front hides a file; one at the end is dropped by Windows.
      let isLast = place == part.count - 1 && ending.isEmpty && target == .any
      let isHidden = byte == UInt8(ascii: ".") && (place == 0 || isLast)
      if isSafe(byte, for: target), !isHidden {
        bytes.append(byte)
      } else {
        bytes += escape(byte).utf8
      }
    }
    var text = String(decoding: bytes, as: UTF8.self)
    if target == .any, isDevice(text), let first = part.first {
      text = escape(first) + text.dropFirst()
    }
    return name(text, ending: ending)
  }

  /// The name for a part of a key whose own name differs from another in case only: it names its
  /// digest.
  package static func other(than name: String, ending: String, for part: [UInt8]) -> String {
    let digest = SHA256.digest(of: part.span)
    let stem = beginning(of: name.dropLast(ending.count))
    return "\(stem)+\(Base32.encode(digest.bytes.span))\(ending)"
  }

  /// The folder of an account.
  ///
  /// Where names may not contain colons, `did:plc:…` is `did-plc-…`: the name of a method holds no
  /// hyphen.
  package static func account(_ did: DID, for target: Target) -> String {
    guard target == .any else { return name(did.text) }
    let parts = did.text.split(separator: ":", maxSplits: 2)
    return component(Array(parts.joined(separator: "-").utf8)[...], for: .any)
  }

  private static func isSafe(_ byte: UInt8, for target: Target) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
      UInt8(ascii: "~"), UInt8(ascii: "."):
      true
    case UInt8(ascii: ":"): target == .unix
    default: false
    }
  }

  private static func escape(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 16, uppercase: true)
    return "%" + (digits.utf8.count == 1 ? "0" : "") + digits
  }

  /// Whether a name is that of a device on Windows, whatever its ending.
  private static func isDevice(_ name: String) -> Bool {
    let stem = name.lowercased().prefix { $0 != "." }
    if ["con", "prn", "aux", "nul"].contains(stem) { return true }
    return stem.utf8.count == 4 && (stem.hasPrefix("com") || stem.hasPrefix("lpt"))
      && stem.last.map { "0"..."9" ~= $0 } == true
  }
}

// MARK: What an extraction writes beside CAR, blobs and records

extension FileNaming {
  package static let metadata = "backup-metadata.json"
  package static let didDocument = "did-document.json"
  package static let plcLog = "plc-audit-log.json"
  /// The documents of an account.
  package static let documents = [metadata, didDocument, plcLog]
  /// The list of the files that were written, and of their digests.
  package static let extractedList = "carpack-extracted.sha256"
  /// The same while it is written.
  package static let unfinishedExtractedList = extractedList + temporaryEnding
  /// The ending of a file that is being written.
  package static let temporaryEnding = ".partial"
}
