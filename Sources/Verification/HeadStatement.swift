package import ATProtocol
package import Archive
internal import Files
package import IPLD
package import Snapshots

/// A signed statement that an archive had a head at a time: `NAME.head`, beside the archive.
///
/// The head commits to everything in the file, so a person who keeps the statement elsewhere, or
/// trusts its key, can tell later whether anything that was there then is gone or another. Six
/// lines of UTF-8 text, each ended by a line feed:
///
/// ```
/// carpack head 1
/// head bafyrei…                   the CID of the newest manifest
/// bytes 123456                    the length of what was committed
/// time 2026-11-23T14:00:00Z       when it was signed, in RFC 3339 and UTC
/// key did:key:z…                  the key that signed
/// signature …                     64 bytes in base64url without padding
/// ```
///
/// The signature is ECDSA over the SHA-256 of the lines before its own, r ‖ s with the lower s, as
/// commits have it.
package struct HeadStatement: Equatable, Sendable {
  /// The CID of the newest manifest.
  package let head: CID
  /// The length of what was committed, in bytes.
  package let byteCount: UInt64
  /// When it was signed.
  package let time: UnixTime
  /// The key that signed, as the statement says.
  package let key: VerificationKey
  private let signature: [UInt8]

  /// The longest text that is read, in bytes.
  package static let maximumLength = 1024

  private static let title = "carpack head 1"

  /// Signs a statement about what is committed.
  ///
  /// - Throws: `PrivateKey.Fault`; ``SnapshotError/noSnapshot`` if nothing is committed.
  package init(of generation: Generation, at time: UnixTime, signing key: PrivateKey) throws {
    guard let head = generation.head?.cid else { throw SnapshotError.noSnapshot }
    (self.head, byteCount, self.time) = (head, generation.committedLength, time)
    self.key = key.verificationKey
    let message = Self.message(head, byteCount, time, self.key)
    signature = try key.sign(message.span)
  }

  /// Reads a statement; ``isSigned`` says whether its signature is valid.
  ///
  /// - Throws: ``BackupError/malformedDocument(_:)`` for any text of another form.
  package init(_ text: [UInt8]) throws {
    func malformed(_ what: String) -> BackupError {
      .malformedDocument("the statement of the head is malformed: \(what)")
    }
    guard text.count <= Self.maximumLength else { throw malformed("it is too long") }
    let lines = String(decoding: text, as: UTF8.self)
      .split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.count == 7, lines[0] == Self.title, lines[6].isEmpty else {
      throw malformed("it is not six lines that begin with \"\(Self.title)\"")
    }
    func value(_ line: Int, _ name: String) throws -> String {
      guard lines[line].hasPrefix("\(name) ") else {
        throw malformed("line \(line + 1) is not \"\(name) …\"")
      }
      return String(lines[line].dropFirst(name.count + 1))
    }
    do {
      head = try CID(value(1, "head"))
      key = try VerificationKey(didKey: value(4, "key"))
    } catch let error where !(error is BackupError) {
      throw malformed("\(error)")
    }
    guard let byteCount = UInt64(try value(2, "bytes")) else { throw malformed("line 3") }
    guard let time = UnixTime(try value(3, "time")) else { throw malformed("line 4") }
    guard let signature = Base64.decodeURL(try value(5, "signature")) else {
      throw malformed("line 6")
    }
    (self.byteCount, self.time, self.signature) = (byteCount, time, signature)
    // What is signed is what is read: every value has one spelling.
    guard self.text == text else { throw malformed("a value is not in canonical form") }
  }

  /// Whether the key in it has signed it.
  package var isSigned: Bool {
    let message = Self.message(head, byteCount, time, key)
    let span = message.span
    return key.verifies(signature, of: span)
  }

  /// Whether an archive has the head, or had it and has grown since.
  ///
  /// - Parameters:
  ///   - file: the statement's name.
  ///   - required: the key that must have signed it; nil for any.
  ///   - archive: the archive's name.
  ///   - generation: what is committed of it.
  ///   - history: its snapshots.
  package func judge(
    _ file: String, by required: VerificationKey?, _ archive: String, _ generation: Generation,
    _ history: SnapshotHistory
  ) -> ProofLevels.Finding {
    guard isSigned else { return .init(false, "\(file): the signature is not valid") }
    if let required, required != key {
      return .init(false, "\(file) is signed by \(key), not by \(required)")
    }
    let isHead = generation.head?.cid == head
    let isThere = isHead || history.entries.contains { $0.cid == head && $0.isVouched }
    guard isThere, generation.committedLength >= byteCount else {
      return .init(
        false, "\(archive) does not have the head \(head), which was signed at \(time)")
    }
    let since = isHead ? "" : "; the archive has grown since"
    return .init(true, "\(archive): the head of \(time) is there, signed by \(key)\(since)")
  }

  /// The statement as it stands in the file.
  package var text: [UInt8] {
    Self.message(head, byteCount, time, key)
      + Array("signature \(Base64.encodeURL(signature))\n".utf8)
  }

  private static func message(
    _ head: CID, _ byteCount: UInt64, _ time: UnixTime, _ key: VerificationKey
  ) -> [UInt8] {
    Array(
      "\(title)\nhead \(head)\nbytes \(byteCount)\ntime \(time)\nkey \(key.didKey)\n".utf8)
  }
}
