internal import Archive
package import Files
internal import IPLD
package import SystemPackage

/// A repository's CAR while it arrives: in a file without a name beside the archive, each block
/// compared with its CID on the way.
///
/// Nothing of it is in the archive before all of it has been checked, for what is in the archive
/// stays there.
package actor ReceivedRepository {
  private let queue = OwnQueue("repository")
  private let folder: FilePath
  private let limit: Int
  private let arrived: @Sendable (Int) -> Void
  private var checker = CARStreamChecker()
  private var file: TemporaryFile?
  private var beginning: [UInt8] = []

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe queue.asUnownedSerialExecutor()
  }

  /// A repository of which nothing has come.
  ///
  /// - Parameters:
  ///   - folder: where its file goes.
  ///   - limit: how long its CAR may be, in bytes, decompressed.
  ///   - arrived: is told how many bytes there are.
  package init(in folder: FilePath, limit: Int, arrived: @escaping @Sendable (Int) -> Void) {
    (self.folder, self.limit, self.arrived) = (folder, limit, arrived)
  }

  /// Receives a CAR.
  ///
  /// - Throws: `TransportError` if it breaks off; `CARError` and ``BackupError`` if it is
  ///   malformed, or longer than it may be.
  package func receive<Body: AsyncSequence & Sendable>(_ body: Body) async throws
  where Body.Element == [UInt8] {
    checker = CARStreamChecker()
    beginning = []
    file = try TemporaryFile(in: folder)
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

  private func take(_ piece: [UInt8]) throws {
    beginning += piece.prefix(64 - beginning.count)
    try check { checker throws(CARError) in try checker.take(piece.span) }
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
