package import Archive
import Foundation
package import IPLD
import Synchronization
import SystemPackage
import TestSupport

/// The file that a disturbed writer left, put on disk for a reader and a verifier to look at.
package final class ArchiveImage: Sendable {
  /// Something that the file must not contain or do.
  package struct Problem: Error, CustomStringConvertible {
    /// What it is.
    package let description: String

    init(_ description: String) { self.description = description }
  }

  /// The files that have been examined: many disturbances leave the same file.
  private struct Known {
    /// The state that a file proved to be in; nil for none.
    var files: [SHA256Digest: Generation?] = [:]
    /// What is in files that are an archive to their last byte.
    var contents: [SHA256Digest: ArchiveContents] = [:]
  }

  private let known = Mutex(Known())
  private let folder: TemporaryFolder
  /// Where the file is.
  package let path: String

  /// A place for images.
  package init() throws {
    folder = try TemporaryFolder()
    path = folder.file("image.car.zst")
  }

  /// Puts these bytes there, in a new file, as a reader may still look at the old one.
  package func write(_ bytes: [UInt8]) throws {
    try Data(bytes).write(to: URL(filePath: path), options: .atomic)
  }

  /// Opens these bytes.
  package func open(_ bytes: [UInt8]) throws -> ArchiveReader {
    try ArchiveReader(MappedFile(copying: bytes))
  }

  /// What is committed according to these bytes; nil if nothing is.
  package func generation(of bytes: [UInt8]) throws -> Generation? {
    let file = bytes.span
    let atEnd = Footer.frame(file, endingAt: file.count)
    guard let footer = atEnd ?? Footer.last(in: file, before: file.count) else { return nil }
    return try Footer.read(file, footer)
  }

  /// Has programs look at an archive that share nothing with the one that made it.
  ///
  /// - Parameters:
  ///   - bytes: The archive, without anything after its last footer.
  ///   - contents: What it has to decompress to; nil for anything.
  /// - Throws: ``Problem`` if one of them does not accept it.
  package func checkIndependently(_ bytes: [UInt8], _ contents: ArchiveContents? = nil) throws {
    try write(bytes)
    guard try ZstdProgram.accepts(path) else { throw Problem("zstd does not accept it") }
    if let contents, try ZstdProgram.decompress(path) != contents.stream {
      throw Problem("zstd makes something else of it")
    }
    // It takes a second for a megabyte.
    guard IndependentReader.isPresent, bytes.count < 1 << 20 else { return }
    guard try IndependentReader.run(["verify", path]).status == 0 else {
      throw Problem("the reader that knows the document alone does not accept it")
    }
  }

  /// Everything in an archive that has to verify, and to be at this generation.
  ///
  /// - Parameters:
  ///   - bytes: The file.
  ///   - generation: What has to be committed; nil for anything.
  ///   - mayTearFooter: Whether a footer of which a loss of power has left some sectors may follow.
  ///     Nobody can tell it from one that was whole once, so a verifier has to call it damage.
  /// - Throws: ``Problem``, and what reading throws.
  package func contents(
    of bytes: [UInt8], _ generation: Generation? = nil, mayTearFooter: Bool = false
  ) throws -> ArchiveContents {
    let digest = SHA256.digest(of: bytes.span)
    if let generation, generation.committedLength == UInt64(bytes.count),
      let contents = known.withLock({ $0.contents[digest] })
    {
      return contents
    }
    let reader = try open(bytes)
    if let generation, reader.generation != generation {
      throw Problem("it opens as \(reader.generation), and not as \(generation)")
    }
    guard reader.generation.number > 0 else { throw Problem("nothing is committed") }
    let found = try reader.verify(workers: 1)
    let end = reader.generation.committedLength
    // What was interrupted may follow; nothing else may be said.
    let serious = found.findings.filter { finding in
      let isTorn = finding.error.reason == .damagedFooter && finding.error.offset ?? 0 >= end
      return finding.severity != .interruptedTail && !(mayTearFooter && isTorn)
    }
    if let finding = serious.first { throw Problem("verifying it says: \(finding)") }
    let tail = UInt64(bytes.count) - end
    guard (tail > 0) == (found.worst != nil), found.isComplete else {
      throw Problem("\(tail) bytes follow, and the verifier found \(found.findings)")
    }
    let contents = try ArchiveContents(of: reader)
    if tail == 0 {
      known.withLock { known in
        // It holds everything that is in them.
        if known.contents.count >= 50 { known.contents = [:] }
        known.contents[digest] = contents
      }
    }
    return contents
  }

  /// Checks that bytes are an archive in one of these states, whatever follows it, or in none if
  /// that is allowed.
  ///
  /// - Parameters:
  ///   - bytes: The file.
  ///   - states: The states it may be in.
  ///   - blocks: If it may be in none, the sections that it may give back.
  ///   - mayTearFooter: Whether sectors of a footer may follow.
  /// - Throws: ``Problem``, and what reading it throws.
  package func check(
    _ bytes: [UInt8], isOneOf states: some Sequence<CommittedState>,
    orUncommittedOf blocks: [Block]? = nil, mayTearFooter: Bool = false
  ) throws {
    let digest = SHA256.digest(of: bytes.span)
    if let found = known.withLock({ $0.files[digest] }) {
      guard found == nil ? blocks != nil : states.contains(where: { $0.generation == found }) else {
        throw Problem("it opens as \(found.map { "\($0)" } ?? "nothing")")
      }
      return
    }
    let state = try find(bytes, states, blocks, mayTearFooter)
    known.withLock { $0.files[digest] = .some(state?.generation) }
  }

  private func find(
    _ bytes: [UInt8], _ states: some Sequence<CommittedState>, _ blocks: [Block]?,
    _ mayTearFooter: Bool
  ) throws -> CommittedState? {
    let reader: ArchiveReader
    do {
      reader = try open(bytes)
    } catch let error as ArchiveError where error.reason == .notAnArchive {
      guard blocks != nil else { throw error }
      return nil
    }
    guard reader.generation.number > 0 else {
      guard let blocks else { throw Problem("what was committed is gone") }
      try checkUncommitted(reader, blocks)
      return nil
    }
    guard let state = states.first(where: { $0.generation == reader.generation }) else {
      throw Problem("it opens as a generation that was never committed: \(reader.generation)")
    }
    guard bytes.starts(with: state.bytes) else { throw Problem("bytes of it were changed") }
    let contents = try self.contents(
      of: bytes, state.generation, mayTearFooter: mayTearFooter)
    if let difference = state.contents.difference(from: contents) { throw Problem(difference) }
    return state
  }

  /// Checks that a file without a footer is not taken for more than it is, and gives back nothing
  /// wrong.
  private func checkUncommitted(_ reader: ArchiveReader, _ blocks: [Block]) throws {
    guard reader.recovery?.rebuild == .noFooter else {
      throw Problem("it has no footer, and the reader does not say so")
    }
    guard try !reader.verify(workers: 1).isIntact else {
      throw Problem("it has no footer, and is said to be intact")
    }
    for block in blocks {
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
