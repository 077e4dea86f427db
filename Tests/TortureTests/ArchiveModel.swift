import ATProtocol
import Archive
import ArchiveTestSupport
import Foundation
import IPLD
import TestSupport

/// What an archive has to give back, kept in memory without any archive.
struct ArchiveModel: Equatable {
  /// A snapshot.
  struct Entry: Equatable {
    let did: String
    /// No two have the same.
    let createdAt: String
    let car: [UInt8]
    /// The blobs that its records refer to.
    let blobs: [CID]
  }

  /// The snapshots, the oldest first.
  private(set) var entries: [Entry] = []

  /// A snapshot more.
  func adding(_ entry: Entry) -> ArchiveModel {
    var model = self
    model.entries.append(entry)
    return model
  }

  /// The snapshots of both, in the order of time.
  func merging(_ other: ArchiveModel) -> ArchiveModel {
    var model = self
    model.entries = (entries + other.entries).sorted { $0.createdAt < $1.createdAt }
    return model
  }

  /// What is left if, for each account, the last n are kept, and the last of each of the last n
  /// days.
  func pruning(last: Int, daily: Int) -> ArchiveModel {
    var kept = Set<String>()
    for entries in Dictionary(grouping: entries, by: \.did).values {
      kept.formUnion(entries.suffix(max(1, last)).map(\.createdAt))
      var days: [Substring] = []
      for entry in entries.reversed() where !days.contains(entry.createdAt.prefix(10)) {
        days.append(entry.createdAt.prefix(10))
        if days.count <= daily { kept.insert(entry.createdAt) }
      }
    }
    var model = self
    model.entries.removeAll { !kept.contains($0.createdAt) }
    return model
  }
}

/// An account that changes from one snapshot to the next.
struct ModelledAccount {
  private(set) var repository: TestRepository
  private var images: [(path: String, blob: [UInt8])] = []
  private var revisions = 0

  init(_ number: Int) throws {
    repository = try TestRepository(posts: 8)
    repository.did = "did:plc:" + String(repeating: ["a", "b", "c"][number], count: 24)
    // Before all that follow.
    repository.rev = "3lscuqc52222x"
  }

  /// Adds and removes some records, some of them with blobs.
  mutating func change(using random: inout SeededGenerator) throws {
    for _ in 0..<Int.random(in: 0...5, using: &random) {
      let path = "app.bsky.feed.like/3k\(random.next() % 64)"
      switch random.next() % 4 {
      case 0: repository.remove(path)
      case 1:
        let blob = random.bytes(Int.random(in: 0...1500, using: &random))
        images.append((path, blob))
        try repository.add(path, blob: .blob(blob))
      default: try repository.add(path, ["n": .integer(Int128(random.next() >> 1))])
      }
    }
    revisions += 1
    let digits = Array("234567abcdefghijklmnopqrstuvwxyz")
    repository.rev =
      "3lscuqc5\(digits[revisions >> 10 & 31])\(digits[revisions >> 5 & 31])\(digits[revisions & 31])2x"
  }

  /// The blobs that the records refer to.
  var blobs: [[UInt8]] {
    images.filter { path, blob in
      // The record may be another by now.
      var other = TestRepository()
      guard (try? other.add(path, blob: .blob(blob))) != nil else { return false }
      return repository.cid(of: path) == other.cid(of: path)
    }.map(\.blob)
  }
}
