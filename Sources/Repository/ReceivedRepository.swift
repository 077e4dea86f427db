internal import Archive
package import Files
package import IPLD
package import SystemPackage

/// A repository's CAR while it arrives: in a file without a name beside the archive, or kept
/// nowhere, each block compared with its CID on the way.
///
/// Nothing of it is in the archive before all of it has been checked, because what is in the
/// archive stays there.
package actor ReceivedRepository {
  private let queue = OwnQueue("repository")
  private let folder: FilePath?
  private let limit: Int
  private let arrived: @Sendable (Int) -> Void
  private let found: @Sendable (CID) -> Void
  private var checker = CARStreamChecker()
  private var file: TemporaryFile?
  private var beginning: [UInt8] = []

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe queue.asUnownedSerialExecutor()
  }

  /// A repository of which nothing has arrived.
  ///
  /// - Parameters:
  ///   - folder: where its file goes; nil if it is not kept.
  ///   - limit: how long its CAR may be, in bytes, decompressed.
  ///   - arrived: called with the number of bytes.
  ///   - found: called with the CID of each block that is whole and checked.
  package init(
    in folder: FilePath?, limit: Int, arrived: @escaping @Sendable (Int) -> Void,
    found: @escaping @Sendable (CID) -> Void = { _ in }
  ) {
    (self.folder, self.limit, self.arrived, self.found) = (folder, limit, arrived, found)
  }

  /// Receives a CAR.
  ///
  /// - Throws: `TransportError` if it breaks off; `CARError` and ``BackupError`` if it is
  ///   malformed, or longer than it may be.
  package func receive<Body: AsyncSequence & Sendable>(_ body: Body) async throws
  where Body.Element == [UInt8] {
    checker = CARStreamChecker()
    beginning = []
    file = try folder.map { folder throws in try TemporaryFile(in: folder) }
    for try await piece in body { try take(piece) }
    try check { checker throws(CARError) in try checker.finish() }
  }

  /// The CAR, once it has been received.
  package func received() throws -> TemporaryFile {
    guard let file, checker.header != nil else {
      throw BackupError.malformedRepository("the server sent nothing")
    }
    return file
  }

  /// The roots that the CAR's header names, once that has arrived.
  package var roots: [CID]? { checker.header?.roots }

  private func take(_ piece: [UInt8]) throws {
    beginning += piece.prefix(64 - beginning.count)
    try check { checker throws(CARError) in try checker.take(piece.span, found: found) }
    guard checker.byteCount <= limit else { throw BackupError.repositoryTooLarge(limit: limit) }
    try file?.write(piece.span)
    arrived(checker.byteCount)
  }

  /// Checks what has arrived.
  ///
  /// - Throws: the error, or what came instead of a CAR.
  private func check(_ body: (inout CARStreamChecker) throws(CARError) -> Void) throws {
    do throws(CARError) {
      try body(&checker)
    } catch {
      let isText = beginning.allSatisfy {
        0x20..<0x7f ~= $0 || $0 == 0x0a || $0 == 0x0d || $0 == 0x09
      }
      guard checker.header == nil, isText, !beginning.isEmpty else { throw error }
      throw BackupError.notARepository(String(decoding: beginning, as: UTF8.self))
    }
  }
}
