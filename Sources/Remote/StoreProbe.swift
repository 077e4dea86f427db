internal import IPLD
internal import ObjectStore
internal import XRPC

/// Finds out whether a store obeys conditions, before the first write to a bucket: one that does not
/// would let two writers overwrite each other.
struct StoreProbe {
  let client: BucketClient
  /// Where the object lies that is going to be written; the probe lies beside it.
  let key: String

  /// How the keys of probes begin.
  static func prefix(_ key: String) -> String { "\(key).carpack-probe-" }

  private static let otherTag = "\"00000000000000000000000000000000\""

  /// Refuses to go on if it does not.
  ///
  /// - Throws: ``PushError``; ``StoreError``; `TransportError`.
  func refuseForgetful(_ object: BucketAddress) async throws {
    guard try await obeys() else { throw PushError.knowsNoConditions("\(object)") }
  }

  /// Whether the store obeys.
  ///
  /// - Throws: ``StoreError``; `TransportError`.
  func obeys() async throws -> Bool {
    let bytes = Array("This object was made by carpack to see how the store behaves.\n".utf8)
    let digest = SHA256.digest(of: bytes.span)
    let probe = Self.prefix(key) + "\(UInt64.random(in: 0 ... .max))"
    let answer: Bool
    do {
      answer = try await obeys(probe, bytes, digest)
    } catch {
      do { try await client.remove(probe) } catch _ {}
      throw error
    }
    try await client.remove(probe)
    return answer
  }

  private func obeys(_ probe: String, _ bytes: [UInt8], _ digest: SHA256Digest) async throws -> Bool
  {
    let body = RequestBody(bytes)
    try await client.put(body, digest: digest, at: probe)
    guard
      try await isRefused({
        try await client.put(body, digest: digest, at: probe, if: .isAbsent)
      }),
      try await isRefused({
        try await client.put(body, digest: digest, at: probe, if: .isTagged(Self.otherTag))
      })
    else { return false }
    let upload = try await client.beginUpload(of: probe)
    let part = try await client.send(body, digest: digest, asPart: 1, of: upload)
    let isRefused = try await isRefused {
      try await client.complete(upload, [part], if: .isTagged(Self.otherTag))
    }
    if isRefused { try await client.abandon(upload) }
    return isRefused
  }

  private func isRefused(_ write: () async throws -> String?) async throws -> Bool {
    do {
      _ = try await write()
      return false
    } catch let error as StoreError where error.kind == .conditionFailed {
      return true
    }
  }
}
