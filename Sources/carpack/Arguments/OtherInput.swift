internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import Terminal

/// What is given where an archive or a CAR is wanted, and is something else.
enum OtherInput {
  /// That a folder was given where a verb reads one archive: with the archives that are in it.
  static func folder(_ path: String) throws -> Failure {
    folder(path, with: try ArchiveFolder.archives(in: path))
  }

  /// The same, of a folder whose archives are known.
  static func folder(_ path: String, with archives: [String]) -> Failure {
    let hint =
      switch archives.count {
      case 0: "there is no archive (*.car.zst) in it"
      case 1: "the archive in it is \(archives[0])"
      default:
        "name one of the \(Quantity.grouped(archives.count)) archives in it, such as \(archives[0])"
      }
    return Failure("\(path) is a folder", hint: hint, status: .usage, at: path)
  }

  /// That a file is not an archive: with what it seems to be.
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

  /// That a file is not a CAR, if it is empty or a text; nil if it may be one.
  static func noCAR(_ file: InputFile) -> Failure? {
    let what = file.withBeginning { bytes in
      bytes.isEmpty ? "is empty" : isText(bytes) ? "is a text, not a CAR" : nil
    }
    return what.map {
      Failure(
        "\(file.name) \($0)",
        hint: "a CAR is what \"carpack fetch repo\" gets, and what servers give as an export",
        status: .damaged, at: file.name)
    }
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
