import ATProtocol
import Archive
import ArgumentParser
import Foundation
import IPLD
internal import Repository
import SystemPackage

/// Writes a repository as an account of many years would have it, for measuring.
///
/// Everything follows from the seed: the same options give the same bytes.
@main
struct GenerateRepository: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "generate-repository",
    abstract: "Write a CAR of a made-up repository.",
    discussion: """
      Likes, follows, reposts and posts over two years and more, a true tree over them, and a commit of version 3 \
      whose signature is 64 bytes of no meaning. The same options give the same bytes.
      """)

  @Option(help: "How many records.")
  var records: Int

  @Option(help: "What everything follows from.")
  var seed: UInt64 = 1

  @Option(
    help: "In which order the blocks stand: as the reference server sends them, or the tree's.")
  var order = BlockOrder.server

  @Option(help: "How many percent of the records came with the account from another server.")
  var imported = 0

  @Option(help: "How many percent of the records are posts.")
  var posts = 25

  @Option(help: "How many percent of the posts carry images.")
  var images = 12

  @Option(help: "How many images those posts carry: a number, or MIN-MAX.")
  var imagesPerPost = NumberRange(1...4)

  @Option(help: "A folder for the blobs; without it, references name nothing.")
  var blobs: String?

  @Option(help: "How large the blobs are, in bytes: a number, or MIN-MAX.")
  var blobSize = NumberRange(20_000...80_000)

  @Option(
    help: ArgumentHelp(
      "A file for the same account a while later; may be given more than once, for one state after the other.",
      valueName: "file"))
  var then: [String] = []

  @Option(help: "How many records each later state has more.")
  var created = 500

  @Option(help: "How many records, from any time, each later state has lost.")
  var deleted = 100

  @Option(help: "How many records, from any time, are others in each later state.")
  var updated = 20

  @Flag(help: "Read what was written, and fail unless it is complete and nothing is wrong with it.")
  var check = false

  @Option(name: .shortAndLong, help: "The file to write.")
  var output: String

  func validate() throws {
    guard records > 0 else { throw ValidationError("there must be a record at least") }
    for percentage in [imported, posts, images] where !(0...100).contains(percentage) {
      throw ValidationError("\(percentage) is not a percentage")
    }
  }

  func run() throws {
    let blobCount = try write()
    let size = try FileManager.default.attributesOfItem(atPath: output)[.size] as? Int ?? 0
    print("\(output): \(size) bytes, \(records) records, \(blobCount) blobs")
    if check { try checkOutput() }
  }

  /// Writes the repository, and its later states; answers how many blobs it has.
  private func write() throws -> Int {
    var random = SeededRandom(seed: seed)
    var factory = RecordFactory(
      mix: RecordFactory.Mix(posts: posts, images: images, imagesPerPost: imagesPerPost.range),
      blobs: try BlobFactory(folder: blobs.map { URL(filePath: $0) }, sizes: blobSize.range),
      random: &random)
    var clock = Clock(recordCount: records)
    var writer = try RepositoryWriter(
      beside: URL(filePath: output), importedCount: records * imported / 100)
    _ = try writer.append(.profile, nil, try factory.profile(clock, &random))
    for _ in 1..<records { try create(&writer, &factory, &clock, &random) }
    clock.advance(&random)
    try writer.write(
      to: URL(filePath: output), did: factory.did, revision: clock.tid,
      signature: random.bytes(64), order: order)
    for path in then {
      for _ in 0..<created { try create(&writer, &factory, &clock, &random) }
      // The profile comes first, and stays.
      for _ in 0..<min(deleted, writer.recordCount - 1) {
        writer.remove(1 + random.below(writer.recordCount - 1))
      }
      for _ in 0..<updated {
        clock.advance(&random)
        try writer.replace(
          random.below(writer.recordCount), with: factory.next(clock, &random).value)
      }
      clock.advance(&random)
      try writer.write(
        to: URL(filePath: path), did: factory.did, revision: clock.tid,
        signature: random.bytes(64), order: order)
    }
    try writer.close()
    return factory.blobs.count
  }

  private func create(
    _ writer: inout RepositoryWriter, _ factory: inout RecordFactory, _ clock: inout Clock,
    _ random: inout SeededRandom
  ) throws {
    clock.advance(&random)
    let record = try factory.next(clock, &random)
    let key = clock.tid
    let cid = try writer.append(record.collection, key, record.value)
    if record.collection == .post { factory.posted(key, cid) }
  }

  private func checkOutput() throws {
    let found = RepositoryInspection(of: try CARFile(MappedFile(FilePath(output))))
    print(
      """
      \(found.sectionCount) blocks, \(found.nodeCount) nodes in \(found.treeDepth) levels, \
      \(found.recordCount) records, \(found.blobs.entries.count) blobs
      """)
    guard found.isComplete, found.isWellFormed, found.recordCount == records,
      found.distinctRecordCount == records, found.unreachableBlockCount == 0,
      found.recordWarningCount == 0
    else { throw ValidationError("what was written is not what was meant") }
    print("complete, nothing wrong")
  }
}

/// A range of numbers, written `MIN-MAX`, or as one number.
struct NumberRange: ExpressibleByArgument {
  let range: ClosedRange<Int>
  var defaultValueDescription: String { "\(range.lowerBound)-\(range.upperBound)" }

  init(_ range: ClosedRange<Int>) { self.range = range }

  init?(argument: String) {
    let bounds = argument.split(separator: "-").compactMap { Int($0) }
    guard let first = bounds.first, let last = bounds.last, bounds.count <= 2, 0 < first,
      first <= last
    else { return nil }
    range = first...last
  }
}
