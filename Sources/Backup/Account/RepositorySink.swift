internal import Archive
internal import IPLD
internal import SystemPackage
internal import XRPC

/// Where a repository's CAR goes while it arrives: into a file without a name beside the archive, each block compared with its CID on the way.
///
/// Nothing of it is in the archive before all of it has been checked, for what is in the archive stays there.
///
/// The transport's thread has it while a transfer is under way, and the task that asked for the repository before and after: never both.
final class RepositorySink: ResponseSink, @unchecked Sendable {
  /// The longest CAR that is taken: some tens of millions of records.
  static let maximumLength = 16 << 30

  private let folder: FilePath
  private let arrived: @Sendable (Int) -> Void
  private var checker = CARStreamChecker()
  private var file: TemporaryFile?
  private var beginning: [UInt8] = []

  /// A sink with its file in `folder`; `arrived` is told how many bytes there are.
  init(folder: FilePath, arrived: @escaping @Sendable (Int) -> Void) {
    self.folder = folder
    self.arrived = arrived
  }

  func begin(_ response: HTTPResponse, offset: UInt64, transfer: any Transfer) throws {
    checker = CARStreamChecker()
    beginning = []
    file = try TemporaryFile(in: folder)
  }

  func take(_ bytes: Span<UInt8>) throws -> Flow {
    if beginning.count < 64 {
      beginning.append(bytes.extracting(0..<min(bytes.count, 64 - beginning.count)))
    }
    do throws(CARError) {
      try checker.take(bytes)
    } catch {
      throw malformed(error)
    }
    guard checker.byteCount <= Self.maximumLength else {
      throw BackupError.malformedRepository(
        "the server sends a CAR of more than \(Self.maximumLength) bytes")
    }
    try file?.write(bytes)
    arrived(checker.byteCount)
    return .proceed
  }

  /// The CAR, once the transfer has come to its end.
  ///
  /// - Throws: `CARError` or ``BackupError`` if it is not whole.
  func finish() throws -> (file: TemporaryFile, header: CARHeader) {
    do throws(CARError) {
      try checker.finish()
    } catch {
      throw malformed(error)
    }
    guard let file, let header = checker.header else {
      throw BackupError.malformedRepository("the server sent nothing")
    }
    return (file, header)
  }

  /// The error, or what came instead of a CAR.
  private func malformed(_ error: CARError) -> any Error {
    let isText = beginning.allSatisfy {
      0x20..<0x7f ~= $0 || $0 == 0x0a || $0 == 0x0d || $0 == 0x09
    }
    guard checker.header == nil, isText, !beginning.isEmpty else { return error }
    return BackupError.notARepository(String(decoding: beginning, as: UTF8.self))
  }
}
