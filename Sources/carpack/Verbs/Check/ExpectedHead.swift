internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Reports
internal import Snapshots
internal import Terminal
internal import Verification

/// A signed statement that an archive had a head, to be compared with the archive.
struct ExpectedHead {
  private let file: String
  private let statement: HeadStatement
  private let key: VerificationKey?

  /// Reads a statement.
  ///
  /// - Parameters:
  ///   - file: where it is.
  ///   - key: the key that has to have signed it; nil for whichever did.
  /// - Throws: ``Failure`` for what is no statement, and for a key that is none.
  init(file: String, key: String?) throws {
    self.file = file
    let input = try InputFile(file)
    guard input.count <= HeadStatement.maximumLength else {
      throw Failure("\(file) is too long to be a signed head", status: .damaged, at: file)
    }
    statement = try Failure.naming(file) {
      do {
        return try HeadStatement(input.withBytes { $0.array })
      } catch let error as BackupError {
        throw Failure(error).of(file)
      }
    }
    do throws(VerificationKeyError) {
      self.key = try key.map { (text) throws(VerificationKeyError) in
        try VerificationKey(didKey: text)
      }
    } catch {
      throw Failure("--head-key: \(error)", status: .usage)
    }
  }

  /// Says whether the archive has the head, or had it and has grown since.
  func check(_ opened: OpenedArchive, _ common: CommonOptions) throws -> ExitStatus {
    guard statement.isSigned else {
      return refuse("\(file): the signature does not hold")
    }
    if let key, key != statement.key {
      return refuse("\(file) is signed by \(statement.key), not by \(key)")
    }
    let generation = opened.reader.generation
    let isHead = generation.head?.cid == statement.head
    let entry = try opened.history.entries.first { $0.cid == statement.head && $0.isVouched }
    guard isHead || entry != nil, generation.committedLength >= statement.byteCount else {
      return refuse(
        "\(opened.name) does not have the head \(statement.head), which was signed at \(statement.time)"
      )
    }
    let since = isHead ? "" : "; the archive has grown since"
    common.say(
      "\(opened.name): the head of \(statement.time) is there, signed by \(statement.key)\(since)"
    )
    return .success
  }

  private func refuse(_ text: String) -> ExitStatus {
    Console.say(.notGenuine, text)
    return .notGenuine
  }
}
