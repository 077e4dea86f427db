internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import SystemPackage
internal import XRPC

/// Giving a server a repository, and finding out whether it has it.
extension RestoreSource {
  /// How long the server is asked whether it has taken a repository whose import was not answered,
  /// in seconds: where a proxy gave up, or nothing came for half an hour; and where the connection
  /// broke off, which mostly ends the import as well.
  private static let (patience, shortPatience) = (60.0, 2.0)
  private static let interval = 2.0
  private static let pieceLength = 2 << 20
  /// How often an import is tried that gets no answer.
  private static let attempts = 3

  /// Sends the repository to a server unless it is there.
  ///
  /// - Returns: Whether it had to be sent.
  /// - Throws: `XRPCError` if the server refuses it; `TransportError` if it does not answer.
  func send(to target: DestinationServer) async throws -> Bool {
    if try await isThere(on: target) { return false }
    var attempt = 1
    while true {
      do {
        _ = try await target.upload(ImportRepo(body), attempts: 1)
        return true
      } catch let error {
        guard let patience = Self.patience(after: error), attempt < Self.attempts else {
          guard let refusal = error as? XRPCError, [400, 413, 500].contains(refusal.status) else {
            throw error
          }
          throw RestoreError.importRefused("\(refusal)", oddities)
        }
        for _ in 0...Int(patience / Self.interval) {
          if try await isThere(on: target) { return true }
          try await Task.sleep(for: .seconds(Self.interval))
        }
        attempt += 1
      }
    }
  }

  /// Whether the head of the repository is the one of the archive.
  private func isThere(on target: DestinationServer) async throws -> Bool {
    try await target.call(CheckAccountStatus()).commit == head
  }

  /// How long to ask whether a repository was taken after an error, in seconds; nil if it was not.
  private static func patience(after error: any Error) -> Double? {
    switch error {
    // A proxy that gave up says nothing about the server behind it, which may be at work.
    case let error as XRPCError where [502, 503, 504, 520, 522, 524].contains(error.status):
      return patience
    case let error as TransportError where error.isTransient:
      switch error.reason {
      case .stalled, .tooSlow: return patience
      default: return shortPatience
      }
    default: return nil
    }
  }

  /// Reads the repository back and compares it: the same tree, every node and record of it there.
  ///
  /// Each block is compared with its CID on the way, and a tree's root names all of it: two trees
  /// with one root have the same paths and records.
  ///
  /// - Throws: ``RestoreError/otherRepository(_:)``; what fetching throws.
  func compare(
    on target: DestinationServer, _ progress: @escaping @Sendable (Progress) -> Void
  ) async throws {
    let limit = Int(clamping: byteCount.multipliedSaturated(by: 4)) + (64 << 20)
    let received = ReceivedRepository(
      in: TemporaryFile.defaultFolder, limit: limit,
      arrived: { [byteCount] count in
        progress(Progress(stage: "reading back", done: UInt64(count), total: byteCount))
      })
    try await target.client.stream(GetRepo(did: did)) { response in
      try await received.receive(response.body)
    }
    let file = try await received.received()
    try await onOwnThread { [self] in
      var offset = 0
      let isAll = try isAll {
        let count = min(Self.pieceLength, file.count - offset)
        defer { offset += count }
        return count > 0 ? try file.bytes(at: UInt64(offset), count: count) : nil
      }
      if isAll { return }
      // Other blocks may be the same tree, and it takes a walk to say what is different.
      let repository = try CheckedRepository(
        file.map(), archive: nil, isHashed: true, observer: { _ in })
      guard repository.inspection.isComplete else {
        throw RestoreError.otherRepository("tree nodes or records are missing in it")
      }
      guard repository.commit.data == commit.data else {
        throw RestoreError.otherRepository(
          "its tree is \(repository.commit.data) with \(repository.inspection.recordCount) records, and the archive's is \(commit.data) with \(recordCount)"
        )
      }
    }
  }
}
