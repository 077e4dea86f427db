internal import IPLD
package import SystemPackage

/// What a file was when carpack last committed to it, or cut it off on purpose, and how much of that
/// it has lost since.
///
/// A file that was cut off behind a footer, or over which an older copy was written, is a valid
/// archive, only an older one. So this is kept beside the content, in the extended attribute
/// `user.carpack.size`, with spaces between: how many bytes the file had, how many it had lost
/// before, and, where that is known, the newest manifest, when it was made and how many snapshots
/// there were (carpack 0.1 wrote only the two numbers). Where a file system has no such attributes,
/// nothing is known. A copy does not have it.
///
/// 1. What was lost stays so, whatever is appended, until ``accept(_:)``; and so does what the file
///    held then.
package enum WrittenSize {
  /// What an archive held.
  package struct Content: Equatable, Sendable {
    /// The newest manifest.
    package let head: String
    /// When it was made, as it says; empty if it does not.
    package let madeAt: String
    /// How many snapshots the archive had.
    package let snapshotCount: Int

    /// The snapshots of an archive, in words that have no spaces in them.
    ///
    /// - Returns: nil if they have: nobody but the owner of the file writes the attribute, but it
    ///   is shown.
    init?(head: String, madeAt: String, snapshotCount: Int) {
      func isWord(_ text: String, _ others: String) -> Bool {
        text.utf8.count <= WrittenSize.longestWord
          && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || others.contains($0)) }
      }
      guard snapshotCount > 0, isWord(head, ""), !head.isEmpty, isWord(madeAt, "-:.+") else {
        return nil
      }
      (self.head, self.madeAt, self.snapshotCount) = (head, madeAt, snapshotCount)
    }
  }

  /// What a file has lost at its end.
  package struct Loss: Equatable, Sendable {
    /// How many bytes.
    package let byteCount: UInt64
    /// What it held before; nil if that was not noted.
    package let content: Content?

    /// What something of this many bytes has lost; nil if nothing.
    package init?(_ note: Note, size: UInt64) {
      byteCount = (note.size - min(size, note.size)).addingSaturated(note.lost)
      content = note.content
      guard byteCount > 0 else { return nil }
    }

    /// A sentence about a file that is a whole archive, only an older one.
    ///
    /// - Parameter name: what to call the file.
    package func ofOlderCopy(named name: String) -> String {
      let held =
        content.map {
          let made = $0.madeAt.isEmpty ? "" : " made \($0.madeAt),"
          let count = $0.snapshotCount == 1 ? "1 snapshot" : "\($0.snapshotCount) snapshots"
          return "it held \(count), the newest\(made) head \($0.head), and "
        } ?? ""
      return
        "\(name) is older than it was: when carpack last wrote to it, \(held)it was \(byteCount) bytes longer; an older copy was put back over it, or its end was cut off"
    }

    /// A sentence about a file that does not end where something was committed.
    ///
    /// - Parameter name: what to call the file.
    package func ofEnd(named name: String) -> String {
      "\(name) has lost \(byteCount) bytes at its end that carpack had written: it was cut off, or replaced by an older copy"
    }
  }

  /// What the attribute says.
  package struct Note {
    package let size: UInt64
    let lost: UInt64
    package let content: Content?

    /// What is noted of something of this size that has lost so much.
    package init(size: UInt64, lost: UInt64 = 0, content: Content?) {
      (self.size, self.lost, self.content) = (size, lost, content)
    }

    /// What is noted on a file; nil if nothing, or nothing that can be read.
    init?(on path: FilePath) {
      guard let text = WrittenSize.attribute.read(path) else { return nil }
      self.init(parsing: text)
    }

    /// As it is kept.
    package var text: String {
      var words = ["\(size)", "\(lost)"]
      if let content {
        let made = content.madeAt.isEmpty ? "-" : content.madeAt
        words += [content.head, made, "\(content.snapshotCount)"]
      }
      return words.joined(separator: " ")
    }

    /// Reads what is kept; nil if it says nothing that can be read.
    package init?(parsing text: String) {
      let words = text.split(separator: " ")
      guard words.count == 2 || words.count == 5, let size = UInt64(words[0]),
        let lost = UInt64(words[1])
      else { return nil }
      (self.size, self.lost) = (size, lost)
      content =
        words.count < 5
        ? nil
        : Int(words[4]).flatMap { count in
          Content(
            head: String(words[2]), madeAt: words[3] == "-" ? "" : String(words[3]),
            snapshotCount: count)
        }
    }
  }

  fileprivate static let longestWord = 80
  fileprivate static let attribute = FileAttribute(name: "user.carpack.size")

  /// What a file has lost at its end; nil if nothing, or if that is not known.
  package static func loss(of path: FilePath) -> Loss? {
    // Read first: another process may be committing more.
    guard let note = Note(on: path), let size = SystemCalls.size(of: path) else { return nil }
    return Loss(note, size: size)
  }

  /// How many bytes a file has lost at its end; 0 if none, or if that is not known.
  package static func lost(of path: FilePath) -> UInt64 { loss(of: path)?.byteCount ?? 0 }

  /// Whether a file that has lost something is a whole archive all the same, only an older one.
  ///
  /// It ends where something was committed then, as far as can be told without a key.
  package static func isWhole(_ path: FilePath) -> Bool {
    do {
      let file = try MappedFile(path)
      return try file.committedLength == UInt64(file.count)
    } catch {
      // What is wrong with the file is said where it is opened.
      return false
    }
  }

  /// Notes that a file is meant to be as long as it is.
  ///
  /// - Parameters:
  ///   - path: the file.
  ///   - content: what it holds; nil to note that with the next commit.
  package static func accept(_ path: FilePath, holding content: Content? = nil) {
    if lost(of: path) > 0, let size = SystemCalls.size(of: path) {
      put(size, content: content, on: path)
    }
  }

  /// Notes what a file is and has lost, if the file system allows it.
  ///
  /// - Parameters:
  ///   - size: how many bytes it has.
  ///   - loss: what it has lost.
  ///   - content: what it holds, which counts if it has lost nothing.
  ///   - path: the file.
  static func put(
    _ size: UInt64, loss: Loss? = nil, content: Content? = nil, on path: FilePath
  ) {
    let note = Note(
      size: size, lost: loss?.byteCount ?? 0, content: loss == nil ? content : loss?.content)
    _ = attribute.write(note.text, to: path)
  }
}
