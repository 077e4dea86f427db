public import Archive
import Foundation
public import IPLD
import SystemPackage
import TestSupport

/// The file that a disturbed writer left, put on disk for a reader and a verifier to look at.
public final class ArchiveImage: Sendable {
  /// Something that must not be.
  public struct Problem: Error, CustomStringConvertible {
    /// What it is.
    public let description: String

    init(_ description: String) { self.description = description }
  }

  private let folder: TemporaryFolder
  /// Where the file is.
  public let path: String

  /// A place for images.
  public init() throws {
    folder = try TemporaryFolder()
    path = folder.file("image.car.zst")
  }

  /// Puts these bytes there, in a new file, as a reader may still look at the old one.
  public func write(_ bytes: [UInt8]) throws {
    try Data(bytes).write(to: URL(filePath: path), options: .atomic)
  }

  /// Opens what is there.
  public func open() throws -> ArchiveReader { try ArchiveReader(path: FilePath(path)) }

  /// What is committed according to these bytes.
  public func generation(of bytes: [UInt8]) throws -> Generation {
    try write(bytes)
    return try open().generation
  }

  /// Everything in an archive that has to verify, and to be at this generation.
  public func contents(of bytes: [UInt8], _ generation: Generation? = nil) throws
    -> ArchiveContents
  {
    try write(bytes)
    let reader = try open()
    if let generation, reader.generation != generation {
      throw Problem("it opens as \(reader.generation), and not as \(generation)")
    }
    guard reader.generation.number > 0 else { throw Problem("nothing is committed") }
    let found = try ArchiveVerifier(reader, workers: 1).verify()
    // What was interrupted may follow; nothing else may be said.
    if let finding = found.findings.first(where: { $0.severity != .interruptedTail }) {
      throw Problem("verifying it says: \(finding)")
    }
    let tail = UInt64(bytes.count) - reader.generation.committedLength
    guard (tail > 0) == (found.worst == .interruptedTail), found.isComplete else {
      throw Problem("\(tail) bytes follow, and the verifier found \(found.findings)")
    }
    return try ArchiveContents(of: reader)
  }

  /// Checks that bytes are an archive in one of these states, whatever follows it, or in none if that is allowed.
  ///
  /// - Parameters:
  ///   - bytes: The file.
  ///   - states: The states it may be in.
  ///   - known: If it may be in none, the sections that it may give back.
  /// - Throws: ``Problem``, and what reading it throws.
  /// - Returns: The state it is in; nil for none.
  @discardableResult
  public func check(
    _ bytes: [UInt8], isOneOf states: some Sequence<CommittedState>,
    orUncommittedOf known: [Block]? = nil
  ) throws -> CommittedState? {
    try write(bytes)
    let reader: ArchiveReader
    do {
      reader = try open()
    } catch let error as ArchiveError where error.reason == .notAnArchive {
      guard known != nil else { throw error }
      return nil
    }
    guard reader.generation.number > 0 else {
      guard let known else { throw Problem("what was committed is gone") }
      try checkUncommitted(reader, known)
      return nil
    }
    guard let state = states.first(where: { $0.generation == reader.generation }) else {
      throw Problem("it opens as a generation that was never committed: \(reader.generation)")
    }
    guard bytes.starts(with: state.bytes) else { throw Problem("bytes of it were changed") }
    let contents = try self.contents(of: bytes, state.generation)
    if let difference = state.contents.difference(from: contents) { throw Problem(difference) }
    return state
  }

  /// Checks that a file without a footer is not taken for more than it is, and gives back nothing wrong.
  private func checkUncommitted(_ reader: ArchiveReader, _ known: [Block]) throws {
    guard reader.recovery?.rebuild == .noFooter else {
      throw Problem("it has no footer, and the reader does not say so")
    }
    guard try !ArchiveVerifier(reader, workers: 1).verify().isIntact else {
      throw Problem("it has no footer, and is said to be intact")
    }
    for block in known {
      let body: [UInt8]?
      do {
        body = try reader.body(of: block.cid)
      } catch is ArchiveError {
        // A section that the loss of power left in part: said to be damaged, as it is.
        continue
      }
      guard body == nil || body == block.bytes else {
        throw Problem("\(block.cid) comes back as other bytes")
      }
    }
  }
}
