import ATProtocol
import ArchiveTestSupport
import IPLD
import Repository
import TestSupport

/// A repository that goes from state to state, each with a later revision, and blobs of which some
/// come late.
struct SequenceAccount {
  /// Its repository as a CAR, with what a packer is given besides.
  struct State {
    let car: [UInt8]
    /// The blobs in the folder that is packed with it.
    let blobs: [[UInt8]]
  }

  private var repository: TestRepository
  private var number = 0
  /// Blobs that records refer to and that no packer was given yet.
  private(set) var late: [[UInt8]] = []

  /// An account of some posts.
  init(_ letter: String, _ random: inout SeededGenerator) throws {
    repository = try TestRepository(posts: 5 + Int(random.next() % 36))
    repository.did = "did:plc:" + String(repeating: letter, count: 24)
    // Some that compress as little as real ones.
    for number in 0..<Int(random.next() % 40) {
      let text = random.bytes(10 + Int(random.next() % 90)).map { String($0, radix: 36) }
      try repository.add("app.bsky.feed.post/t\(number)", ["text": .string(text.joined())])
    }
  }

  /// Whether blobs are missing that a packer could be given.
  var hasLate: Bool { !late.isEmpty }

  /// Its next state.
  mutating func next(_ random: inout SeededGenerator) throws -> State {
    try repository.advance()
    var blobs: [[UInt8]] = []
    for _ in 0...Int(random.next() % 3) {
      number += 1
      switch random.next() % 5 {
      case 0:
        try repository.add("app.bsky.feed.like/l\(number)", ["n": .integer(Int128(number))])
      case 1 where number > 3:
        repository.remove("app.bsky.feed.post/b\(random.next() % UInt64(number))")
        try repository.add("app.bsky.actor.profile/self", ["n": .integer(Int128(number))])
      default:
        let length = [300, 900, 5000, 66_000, 70_000][Int(random.next() % 5)]
        let blob = random.next() % 2 == 0 ? random.bytes(length) : random.text(length)
        try repository.add(
          "app.bsky.feed.post/b\(number)", blob: .blob(blob), size: blob.count)
        if random.next() % 3 == 0 { late.append(blob) } else { blobs.append(blob) }
      }
    }
    return State(car: try repository.car(), blobs: blobs)
  }

  /// Gives its next states revisions that no other continuation of it has.
  mutating func diverge() throws {
    repository.rev = try repository.rev.map { TID(integer: try TID($0).integer + 1).text }
  }

  /// Gives its next states revisions behind all that another continuation has.
  mutating func follow(_ other: SequenceAccount) {
    repository.rev = max(repository.rev ?? "", other.repository.rev ?? "")
  }

  /// The state it is in, with the blobs that came late.
  mutating func filled() throws -> State {
    defer { late = [] }
    return State(car: try repository.car(), blobs: late)
  }
}

/// What was ever packed, by which it is told what a snapshot needs and a section has to be.
struct PackedStates {
  /// A CAR, the CIDs of its blocks, and those of the blobs that its records refer to.
  typealias Known = (car: [UInt8], blocks: Set<CID>, blobs: [CID])

  private(set) var cars: [SHA256Digest: Known] = [:]
  /// The manifests whose snapshots a verb has given up: they may be in the file anyway, and nothing
  /// is expected of them.
  var givenUp: Set<CID> = []

  /// Notes a CAR.
  mutating func note(_ car: [UInt8]) throws {
    let digest = SHA256.digest(of: car.span)
    guard cars[digest] == nil else { return }
    let inspection = try RepositoryInspection(car: car)
    var blocks: Set<CID> = []
    var cursor = CARCursor(header: inspection.header, payload: 0..<car.count)
    while let (_, cid) = try cursor.next(in: car.span) { blocks.insert(cid) }
    cars[digest] = (car, blocks, inspection.blobs.entries.map(\.cid))
  }

  /// The CAR with this digest; nil for one that was never packed.
  subscript(digest: SHA256Digest) -> Known? { cars[digest] }
}
