import Age
import Archive
import IPLD
import Synchronization
import TestSupport
import Testing

@testable import Sealing

@Suite struct `The keys of a sealed archive` {
  private let first, second: Owner

  init() throws { (first, second) = (try Owner(), try Owner()) }

  @Test func `are needed, and only some of them open it`() throws {
    let bytes = try first.sealed([1, 2, 3])
    let file = MappedFile(copying: bytes)
    #expect(throws: SealedError.wrongKey) { try second.map(bytes) }
    #expect(throws: SealedError.noKey) { try SealedLayer(KeyRing { [] }).map(file) }
    #expect(throws: SealedError.wrongKey) { try second.open(SimpleStorage(bytes)) }
    let both = SealedLayer(KeyRing { [second, first] in [second.identity, first.identity] })
    #expect(try both.map(file).count == 3)
  }

  @Test func `come and go, and leave nothing of an old one`() throws {
    let file = SimpleStorage(try first.sealed([1, 2, 3]))
    var keys = try SealedKeys(file, first.ring)
    let old = try KeySlots(MappedFile(copying: file.bytes)).entries[1]
    try keys.add(second.recipient)
    #expect(try keys.names == [first.recipient.name, second.recipient.name])
    #expect(throws: SealedError.knownRecipient(second.recipient.name)) {
      try keys.add(second.recipient)
    }
    #expect(try first.plain(file.bytes) == [1, 2, 3])
    #expect(try second.plain(file.bytes) == [1, 2, 3])
    keys = try SealedKeys(file, second.ring)
    try keys.remove(first.recipient.name)
    #expect(throws: SealedError.wrongKey) { try first.plain(file.bytes) }
    #expect(try second.plain(file.bytes) == [1, 2, 3])
    #expect(throws: SealedError.lastRecipient) { try keys.remove(second.recipient.name) }
    #expect(throws: SealedError.unknownRecipient("age1x")) { try keys.remove("age1x") }
    #expect(!Self.contains(file.bytes, old))
    #expect(try SealedCheck(MappedFile(copying: file.bytes)).flaws == [])
  }

  /// Whether bytes hold others.
  private static func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
    bytes.indices.contains { bytes[$0...].starts(with: part) }
  }

  @Test func `have room for some, and no more`() throws {
    let file = SimpleStorage(try first.sealed([1]))
    var keys = try SealedKeys(file, first.ring)
    var owners: [Owner] = []
    do {
      while owners.count < 100 {
        let owner = try Owner()
        try keys.add(owner.recipient)
        owners.append(owner)
      }
    } catch SealedError.tooManyRecipients {}
    #expect((10..<100).contains(owners.count))
    for owner in owners + [first] { #expect(try owner.plain(file.bytes) == [1]) }
  }

  @Test func `may be a passphrase, which is asked for once`() throws {
    let text = Array("correct horse".utf8)
    let passphrase = try AgePassphrase(SecretBytes(copying: text.span), workFactor: 4)
    let file = SimpleStorage()
    let storage = try first.layer.create(in: file, for: [first.recipient, .passphrase(passphrase)])
    try storage.write([5].span, at: 0)
    try storage.commit()
    let asked = Mutex(0)
    let ring = KeyRing(
      { [] },
      ask: { workFactor in
        #expect(workFactor == 4)
        asked.withLock { $0 += 1 }
        return passphrase
      })
    for _ in 0..<3 {
      #expect(try SealedLayer(ring).map(MappedFile(copying: file.bytes)).count == 1)
    }
    #expect(asked.withLock { $0 } == 1)
    let wrong = try AgePassphrase(SecretBytes(copying: [1, 2].span), workFactor: 4)
    #expect(throws: SealedError.wrongKey) {
      try SealedLayer(KeyRing({ [] }, ask: { _ in wrong })).map(MappedFile(copying: file.bytes))
    }
    #expect(throws: SealedError.costlyPassphrase(workFactor: 4)) {
      let ring = KeyRing({ [] }, ask: { throw SealedError.costlyPassphrase(workFactor: $0) })
      return try SealedLayer(ring).map(MappedFile(copying: file.bytes)).count
    }
    #expect(try first.plain(file.bytes) == [5])
  }

  @Test func `are never used twice with the same nonce`() throws {
    var random = SeededGenerator(printing: 0x5ea9_0000)
    var seen: [[UInt8]: [UInt8]] = [:]
    let file = SimpleStorage(keepsWrites: true)
    var storage = try first.create(in: file)
    let identity = try first.archiveIdentity(file.bytes)
    for _ in 0..<20 {
      let same = [UInt8](repeating: 7, count: 300)
      try storage.write(same.span, at: storage.size)
      try storage.synchronize()
      let place = UInt64.random(in: 0..<max(1, try storage.size - 10), using: &random)
      try storage.write([1, 2, 3].span, at: place)
      if random.next() % 3 == 0 { try storage.commit() }
      if random.next() % 3 == 0 {
        // Some of it is lost, and done again.
        let cut = SimpleStorage(file.bytes.dropLast(50), keepsWrites: true)
        let again = try first.open(cut)
        try again.write(same.span, at: again.size)
        try again.commit()
        try Self.note(cut.writes, identity, &seen)
        storage = try first.open(file)
      }
      if random.next() % 4 == 0 { try storage.truncate(to: storage.size - 5) }
    }
    try storage.commit()
    try Self.note(file.writes, identity, &seen)
    #expect(seen.count > 60)
  }

  /// Notes what was sealed under which file key and nonce, and finds what is not the same.
  private static func note(
    _ writes: [[UInt8]], _ identity: AgeIdentity, _ seen: inout [[UInt8]: [UInt8]]
  ) throws {
    for write in writes {
      guard var frame = SealedFrame(write.span, at: 0), frame.kind != .keySlot else { continue }
      if frame.kind == .replacement {
        let inner = SealedFrame(write.span, at: frame.content.lowerBound)
        frame = try #require(inner)
      }
      let content = Array(write[frame.content])
      let header = try AgeHeader(parsing: content.span)
      let key = try header.unwrap(with: [identity]).withBytes { bytes in
        bytes.array(0..<bytes.count)
      }
      let nonce = content[header.length..<header.length + AgePayload.nonceLength]
      let payload = Array(content[(header.length + AgePayload.nonceLength)...])
      #expect(seen[key + nonce] == nil || seen[key + nonce] == payload)
      seen[key + nonce] = payload
    }
  }
}
