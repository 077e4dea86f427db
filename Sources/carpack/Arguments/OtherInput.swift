internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import Terminal

/// The errors for input that is neither an archive nor a CAR.
enum OtherInput {
  /// The error for a folder instead of an archive; it names the archives in the folder.
  static func folder(_ path: String) throws -> Failure {
    folder(path, with: try ArchiveFolder.archives(in: path))
  }

  /// The same, of a folder whose archives are known.
  static func folder(_ path: String, with archives: [String]) -> Failure {
    let hint =
      switch archives.count {
      case 0: "it holds no archive (*.car.zst)"
      case 1: "the archive in it is \(archives[0])"
      default:
        "name one of the \(Quantity.grouped(archives.count)) archives in it, such as \(archives[0])"
      }
    return Failure("\(path) is a folder", hint: hint, status: .usage, at: path)
  }

  /// The error for a file that is not an archive; it says what the file seems to be.
  static func noArchive(_ file: InputFile) -> Failure {
    let made = "archives are made by \"carpack backup\" and \"carpack pack\""
    let (what, hint) = file.withBeginning { bytes -> (String, String) in
      if bytes.isEmpty { return ("is empty", "\(made), and never empty") }
      if CompressedStream(bytes) != nil {
        return (
          "is compressed, and not a carpack archive",
          "if a CAR is in it, \"carpack inspect\" checks it and \"carpack pack\" makes an archive of it"
        )
      }
      return (isText(bytes) ? "is a text, not a carpack archive" : "is not a carpack archive", made)
    }
    return Failure("\(file.name) \(what)", hint: hint, status: .damaged, at: file.name)
  }

  /// The error for a file that is something else than a CAR; nil if it may be one, as it is or
  /// compressed.
  static func noCAR(_ file: InputFile) -> Failure? {
    let what = file.withBeginning { bytes in
      bytes.isEmpty
        ? "is empty"
        : isText(bytes) ? "is a text, not a CAR" : beginsLikeCAR(bytes) ? nil : "is not a CAR"
    }
    return what.map {
      Failure(
        "\(file.name) \($0)",
        hint: "\"carpack fetch repo\" downloads a CAR, and servers export one",
        status: .damaged, at: file.name)
    }
  }

  /// Whether a map follows the length at the beginning of a file, or it is compressed.
  private static func beginsLikeCAR(_ bytes: Span<UInt8>) -> Bool {
    guard CompressedStream(bytes) == nil else { return true }
    var offset = 0
    guard case .value = Varint.read(bytes, at: &offset), offset < bytes.count else { return false }
    return bytes[offset] >> 5 == 5
  }

  /// Whether the beginning of a file is text: UTF-8 without control characters.
  private static func isText(_ bytes: Span<UInt8>) -> Bool {
    let beginning = bytes.extracting(first: 512).array
    // A character may have been cut in two.
    let text = String(decoding: beginning, as: UTF8.self)
    return text.unicodeScalars.dropLast().allSatisfy { scalar in
      scalar != "\u{FFFD}" && (scalar.value >= 0x20 || "\t\n\r".unicodeScalars.contains(scalar))
    }
  }
}
