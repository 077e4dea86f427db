public import IPLD
internal import LibC
internal import SystemPackage

/// Why a pack, a reading or an extraction failed.
public enum BackupError: Error, Equatable, Sendable, CustomStringConvertible {
  /// A system call failed: what was to be done, and the `errno`.
  case system(String, CInt)
  /// The repository is not one that can be packed: why.
  case malformedRepository(String)
  /// A file was written to, or replaced, while it was being read.
  case changedMeanwhile(String)
  /// A folder has no CAR, or more than one: their names.
  case carsInFolder(String, [String])
  /// The DID document or the facts given belong to another account.
  case otherAccount(String, expected: String)
  /// This file is the archive of this other account.
  case archiveOfOther(String, account: String)
  /// A document that was given is malformed.
  case malformedDocument(String)
  /// A file is in the way, and what it holds differs.
  case fileDiffers(String)
  /// Something that is not an ordinary file or folder is in the way.
  case inTheWay(String)
  /// Another run is writing into a folder.
  case busy(String)
  /// The input is a pipe to which no program writes.
  case idlePipe(String)
  /// The folder of an output does not exist.
  case noFolder(String)
  /// What is in an output's place cannot be appended to or replaced: its path, and what it is.
  case notAFile(String, String)
  /// The temporary name of a new archive is taken by what another run has left: its path, and of
  /// which account, if that is known.
  case leftover(String, String?)
  /// A name from the archive that no file may have.
  case hostileName(String)
  /// A CAR is much longer than what the archive holds: its length, and the limit.
  case tooLarge(UInt64, limit: UInt64)
  /// A server sends a repository longer than the limit: the limit, in bytes.
  case repositoryTooLarge(limit: Int)
  /// A server sends a blob longer than the limit: the limit, in bytes.
  case blobTooLarge(limit: Int)
  /// The CAR cannot be reproduced bit for bit: why.
  case carNotExact(String)
  /// What was asked for is not in the archive.
  case notFound(String)
  /// What was asked for is not in what is left of a damaged repository: what, and the damage.
  case notInRemains(String, String)
  /// What was asked for is not in an incomplete repository: what, and how many tree nodes are
  /// missing.
  case notInPart(String, missingNodes: Int)
  /// The archive to be copied is damaged: its name, and how.
  case damagedArchive(String, String)
  /// An archive that is to be copied does not end with what is committed: its name, and how many
  /// bytes follow.
  case unfinishedArchive(String, UInt64)
  /// The copy of an archive failed its verification and was discarded: why.
  case copyFailed(String)
  /// A repository or an account is not genuine: why.
  case notGenuine(String)
  /// A server sent text where a repository should have been: its beginning.
  case notARepository(String)
  /// A server sent a repository in which tree nodes and records are missing: how many.
  case incompleteRepository(nodes: Int, records: Int)
  /// A server does not provide an account's repository: the account, and the server's reason, as a
  /// value and in words.
  case accountUnavailable(String, Unavailability, String)
  /// A DID document names a server that is not asked: the account, and why.
  case unusableServer(String, String)
  /// No password was sent, because the account does not claim the handle: the handle, and the
  /// account.
  case unclaimedHandle(String, String)
  /// No snapshot of this account would be left.
  case lastSnapshot(String)
  /// It is unknown on which server an account is.
  case noServer(String)
  /// A blob whose loss cannot be accepted or reconsidered, because it is not missing or not
  /// accepted: why.
  case notMissing(String)
  /// A text that is not a selector.
  case malformedSelector(String)
  /// An ambiguous selector: the first of its matches.
  case ambiguousSelector(String, [String])

  /// Why a server does not provide an account.
  public enum Unavailability: String, CaseIterable, Sendable {
    /// It does not know the account.
    case unknown
    /// The server's operator has taken it down.
    case takendown
    /// It is suspended.
    case suspended
    /// Its owner has deactivated it.
    case deactivated
  }

  /// The message for people.
  public var description: String {
    switch self {
    case .system(let operation, let code):
      "could not \(operation): \(Errno(rawValue: code))"
    case .malformedRepository(let why), .malformedDocument(let why), .notGenuine(let why),
      .notMissing(let why):
      why
    case .changedMeanwhile(let name): "\(name) was changed by another program while it was read"
    case .carsInFolder(let folder, let names):
      names.isEmpty
        ? "\(folder) holds no .car file"
        : "\(folder) holds more than one .car file: \(names.joined(separator: ", "))"
    case .archiveOfOther(let file, let account):
      "\(file) is the archive of \(account)"
    case .otherAccount(let found, let expected):
      "the document given is about \(found), but the repository belongs to \(expected)"
    case .fileDiffers(let path): "\(path) exists already and holds something else"
    case .inTheWay(let path): "\(path) exists already and is not an ordinary file or folder"
    case .busy(let path): "another carpack is writing into \(path)"
    case .idlePipe(let path): "\(path) is a pipe, and no program writes to it"
    case .noFolder(let path): "there is no folder \(path) (is the disk mounted?)"
    case .notAFile(let path, let kind): "\(path) is \(kind), not a plain file"
    case .leftover(let path, let account):
      "\(path) is an unfinished backup of \(account ?? "an unknown account")"
    case .hostileName(let name): "unsafe file name \"\(name)\""
    case .tooLarge(let length, let limit):
      "the manifest declares a CAR of \(length) bytes; the limit for this archive is \(limit)"
    case .repositoryTooLarge(let limit):
      "the server sends a repository of more than \(limit) bytes, the limit"
    case .blobTooLarge(let limit):
      "the server sends a blob of more than \(limit) bytes, the limit"
    case .carNotExact(let why): "the CAR cannot be reproduced bit for bit: \(why)"
    case .damagedArchive(let name, let how): "\(name) is damaged: \(how)"
    case .unfinishedArchive(let name, let length):
      "\(name) ends in \(length) bytes of an unfinished write, or of one with a damaged footer"
    case .copyFailed(let why):
      "verification of the new archive failed, so it was discarded: \(why)"
    case .notARepository(let beginning):
      "the server sent something other than a CAR: \"\(beginning)\""
    case .incompleteRepository(let nodes, let records):
      "the server sent a repository that lacks \([nodes > 0 ? "tree nodes (\(nodes))" : nil, records > 0 ? "records (\(records))" : nil].compactMap(\.self).joined(separator: " and "))"
    case .accountUnavailable(let account, _, let sentence):
      "the server does not give out the repository of \(account): \(sentence)"
    case .unusableServer(let account, let why): "\(account) cannot be backed up: \(why)"
    case .lastSnapshot(let account): "no snapshot of \(account) would be left"
    case .unclaimedHandle(let handle, let account):
      "the password was not sent: \(handle) leads to \(account), which does not claim that handle"
    case .noServer(let account): "no server is known for \(account)"
    case .notInRemains(let what, let damage):
      "\(what) is not in what is left of the repository, which is damaged: \(damage)"
    case .notInPart(let what, let nodes):
      "\(what) is not in the incomplete repository: tree nodes are missing, with all records below (\(nodes))"
    case .notFound(let what): "\(what) is not in the archive"
    case .ambiguousSelector(let text, let found):
      "\"\(text)\" is ambiguous: \(found.joined(separator: ", "))"
    case .malformedSelector(let text):
      "\"\(text)\" is neither a CID nor collection/rkey nor an at:// URI"
    }
  }
}

extension BackupError {
  /// Returns what `work` returns; an error of the system becomes a ``system(_:_:)`` that names
  /// `operation`.
  @discardableResult
  package static func attempting<Value>(
    _ operation: @autoclosure () -> String, _ work: () throws -> Value
  ) throws -> Value {
    do {
      return try work()
    } catch let error as Errno {
      throw Self.system(operation(), error.rawValue)
    }
  }

  /// Returns the result of a system call.
  ///
  /// - Throws: ``system(_:_:)`` with `operation` and `errno` for a negative one.
  @discardableResult
  package static func check(
    _ result: CInt, _ operation: @autoclosure () -> String
  ) throws(BackupError) -> CInt {
    guard result < 0 else { return result }
    let code = errno
    throw .system(operation(), code)
  }
}

extension BackupError: KnownFault {
  /// What it says of what was asked for, or of what came in.
  public var faultKind: FaultKind {
    switch self {
    case .system, .changedMeanwhile, .busy, .copyFailed: .system
    case .malformedRepository, .malformedDocument, .carNotExact, .damagedArchive,
      .unfinishedArchive, .notARepository, .incompleteRepository:
      .damage
    case .notFound, .notInRemains, .notInPart, .notMissing, .carsInFolder(_, []), .idlePipe,
      .noServer:
      .absence
    case .tooLarge, .repositoryTooLarge, .blobTooLarge: .limit
    case .notGenuine, .otherAccount, .unclaimedHandle: .notGenuine
    case .carsInFolder, .archiveOfOther, .fileDiffers, .inTheWay, .noFolder, .notAFile, .leftover,
      .hostileName, .accountUnavailable, .unusableServer, .lastSnapshot, .malformedSelector,
      .ambiguousSelector:
      .refused
    }
  }
}
