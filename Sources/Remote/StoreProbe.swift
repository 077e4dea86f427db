internal import ATProtocol
internal import Archive
internal import HTTP
internal import IPLD
internal import ObjectStore
internal import Synchronization

/// Probes whether a store supports conditional writes, before the first write to a bucket: one that
/// does not would let two writers overwrite each other.
///
/// The probe is a separate object next to the archive, and uploads to it. They are always removed;
/// if the process is killed, the next writer on this machine removes them.
extension BucketObject {
  /// How the keys of probes begin.
  static func probePrefix(_ key: String) -> String { "\(key).carpack-probe-" }

  private static let otherTag = "\"00000000000000000000000000000000\""

  /// The conditions that are written under.
  private static let conditions: [BucketClient.Condition] = [.isAbsent, .isTagged(otherTag)]

  /// Whether the store supports conditional writes.
  ///
  /// - Throws: ``StoreError``; `TransportError`; `ArchiveError` if the probe cannot be noted.
  func obeysConditions() async throws -> Bool {
    let probe = Self.probePrefix(key) + "\(UInt64.random(in: 0 ... .max))"
    let bytes = Array("This object was made by carpack to see how the store behaves.\n".utf8)
    let (body, digest) = (RequestBody(bytes), SHA256.digest(of: bytes.span))
    return try await ending(.init(kind: .probe, key: probe)) {
      try await client.put(body, digest: digest, at: probe)
      for condition in Self.conditions {
        guard
          try await isRefused({
            try await client.put(body, digest: digest, at: probe, if: condition)
          })
        else { return false }
        // A store may give up an upload that it refuses to complete: each condition has its own.
        let upload = try await client.beginUpload(of: probe)
        let part = try await client.send(body, digest: digest, asPart: 1, of: upload)
        guard try await isRefused({ try await client.complete(upload, [part], if: condition) })
        else { return false }
        try await client.abandon(upload)
      }
      return true
    }
  }

  private func isRefused(_ write: () async throws -> String?) async throws -> Bool {
    do {
      _ = try await write()
      return false
    } catch let error as StoreError where error.kind == .conditionFailed {
      return true
    }
  }

  // MARK: Leftovers

  /// Does something for which work is begun in the store, and ends that work, whatever the result;
  /// a completed upload has ended.
  ///
  /// - Throws: what `body` throws; `ArchiveError` if the work cannot be noted.
  func ending<Value>(_ work: UploadLock.Work, _ body: () async throws -> Value) async throws
    -> Value
  {
    let value: Value
    do {
      try mark?.note(work)
      value = try await body()
    } catch {
      do {
        try await finishing { try await end(work) }
        // A request without an answer may still be done; then the next writer ends what it began.
        if error is StoreError || error is PushError { try mark?.drop(work) }
      } catch _ {
        // A failure to end it now is not reported: the next writer ends it.
      }
      throw error
    }
    if work.kind != .upload {
      try await finishing { [client] in try await client.remove(work.key) }
    }
    try mark?.drop(work)
    return value
  }

  /// Removes from the store what was begun in it.
  private func end(_ work: UploadLock.Work) async throws {
    guard work.kind != .upload else {
      return try await client.abandon(BucketClient.Upload(key: work.key, id: work.id))
    }
    try await client.remove(work.key)
    guard work.kind == .probe else { return }
    for upload in try await uploads(to: work.key) { try await client.abandon(upload) }
  }

  /// Where what is to take an object's place lies until it has been read back.
  static func temporaryKey(_ key: String) -> String { "\(key).carpack-new" }

  /// The age, in microseconds, from which an upload is taken for abandoned: seven days.
  private static let abandonedAge: Int64 = 7 * 86_400 * 1_000_000

  /// Removes what an ended process on this machine has left in the store, as its mark says, and
  /// abandoned uploads.
  ///
  /// The work of other machines is not touched: they may still be running.
  ///
  /// - Throws: `StoreError`; `TransportError`; `ArchiveError` if the mark cannot be written.
  func giveUpLeftovers() async throws {
    guard let mark, mark.wasLeft else { return }
    func isBeside(_ other: String) -> Bool {
      other == Self.temporaryKey(key) || other.hasPrefix(Self.probePrefix(key))
    }
    for work in mark.begun {
      if isBeside(work.key) || work.kind == .upload && work.key == key { try await end(work) }
      try mark.drop(work)
    }
    let oldest = client.now.advanced(by: -Self.abandonedAge)
    for upload in try await uploads(to: key) where upload.key == key || isBeside(upload.key) {
      if let begun = upload.begun, begun < oldest { try await client.abandon(upload) }
    }
  }

  /// The uploads to keys with a prefix; none if the store does not let this user list them.
  private func uploads(to prefix: String) async throws -> [BucketClient.Upload] {
    do {
      return try await client.uploads(to: prefix)
    } catch let error as StoreError where error.kind == .denied {
      // They are left to the bucket's rule for incomplete uploads.
      return []
    }
  }
}

/// How long work that must be completed in the store may take after a cancellation: a signal allows
/// two seconds for everything.
private let cancelledRest: Duration = .milliseconds(500)

/// Completes something even if the task that waits for it is cancelled, but then within a limit.
///
/// - Throws: what `body` throws; `CancellationError` if it took too long.
func finishing<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value)
  async throws -> Value
{
  let work = Task.detached { try await body() }
  return try await withTaskCancellationHandler {
    try await work.value
  } onCancel: {
    Task.detached {
      try await Task.sleep(for: cancelledRest)
      work.cancel()
    }
  }
}
