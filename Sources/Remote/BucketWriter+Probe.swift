internal import IPLD
internal import ObjectStore
internal import XRPC

/// Finding out whether a store obeys conditions, before the first write to a bucket: one that does
/// not would let two writers overwrite each other. The probe lies beside the object.
extension BucketWriter {
  /// How the keys of probes begin.
  static func probePrefix(_ key: String) -> String { "\(key).carpack-probe-" }

  private static let otherTag = "\"00000000000000000000000000000000\""

  /// Refuses a store that knows no conditions, unless nothing else writes there.
  ///
  /// - Throws: ``PushError``; ``StoreError``; `TransportError`.
  func requireConditionalWrites() async throws {
    if isExclusive { return }
    guard try await obeysConditions() else {
      throw PushError.knowsNoConditions("\(BucketAddress(bucket: client.bucket, key: key))")
    }
  }

  /// Whether the store obeys.
  ///
  /// - Throws: ``StoreError``; `TransportError`.
  func obeysConditions() async throws -> Bool {
    let bytes = Array("This object was made by carpack to see how the store behaves.\n".utf8)
    let digest = SHA256.digest(of: bytes.span)
    let probe = Self.probePrefix(key) + "\(UInt64.random(in: 0 ... .max))"
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

  /// Where what is to take an object's place lies until it has been read back.
  static func temporaryKey(_ key: String) -> String { "\(key).carpack-new" }

  /// Gives up what an interrupted writer has left beside the object: parts of uploads that were not
  /// ended, probes, and a copy that was to take the object's place.
  ///
  /// - Throws: `StoreError`; `TransportError`.
  func giveUpLeftovers() async throws {
    let (temporary, probes) = (Self.temporaryKey(key), Self.probePrefix(key))
    for upload in try await client.uploads(to: key)
    where [key, temporary].contains(upload.key) || upload.key.hasPrefix(probes) {
      try await client.abandon(upload)
    }
    try await client.remove(temporary)
    try await client.list(probes) { page in
      for object in page { try await client.remove(object.key) }
    }
  }
}
