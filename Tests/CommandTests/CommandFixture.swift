import ATProtocol
import Foundation
import IPLD
import TestSupport

/// What every session finds in its folder.
enum CommandFixture {
  static let image = SampleFile.png("an image")
  static let photo = SampleFile.jpeg("a photo")
  static let note = Array("a note that no record refers to\n".utf8)

  /// The account whose repository `repo.car` is.
  static func repository() throws -> TestRepository {
    var repository = try TestRepository(posts: 3)
    try repository.add("app.bsky.feed.post/image", blob: .blob(image), size: image.count)
    try repository.add(
      "app.bsky.feed.post/photo", blob: .blob(photo), mimeType: "image/jpeg", size: photo.count)
    return repository
  }

  /// Writes it all.
  static func write(to folder: TemporaryFolder) throws {
    let repository = try repository()
    let car = try repository.car()
    try folder.write("repo.car", car)
    // What became of it: posts created, changed and deleted, one image that came, one that went.
    var later = repository
    later.rev = "3lscuqc52or3x"
    later.remove("app.bsky.feed.post/photo")
    try later.add("app.bsky.feed.post/3k1000001", ["text": .string("post number one")])
    try later.add("app.bsky.feed.post/again", blob: .blob(image), size: image.count)
    try later.add(
      "app.bsky.feed.post/late", blob: .blob(note), mimeType: "image/webp", size: 123456)
    try folder.write("later.car", try later.car())
    var incomplete = later
    incomplete.rev = "3lscuqc52or4x"
    try incomplete.add("app.bsky.feed.post/lost", ["text": .string("not in the CAR")])
    incomplete.omitted = Set([incomplete.cid(of: "app.bsky.feed.post/lost")].compactMap { $0 })
    try folder.write("incomplete.car", try incomplete.car())
    var neighbour = try TestRepository(posts: 1)
    neighbour.did = "did:plc:z72i7hdynmk6r22z27h6tvur"
    try folder.write("neighbour.car", try neighbour.car())
    // Both images under names that say nothing, and a note.
    try folder.write("blobs/1", image)
    try folder.write("blobs/more/2.dat", photo)
    try folder.write("blobs/note.txt", note)
    // One image only.
    try folder.write("some/1", image)
    // A file whose name is a lie.
    try folder.write("lies/\(CID.blob(image)).png", photo)
    try folder.write("lies/2", photo)
    // CARs that are incomplete, truncated, changed, empty, or something else.
    var partial = repository
    partial.omitted = Set([repository.cid(of: "app.bsky.feed.post/image")].compactMap { $0 })
    try folder.write("partial.car", try partial.car())
    try folder.write("cut.car", Array(car.dropLast(3)))
    var flipped = car
    flipped[car.count - 3] ^= 1
    try folder.write("flipped.car", flipped)
    try folder.write("empty", [])
    try folder.write("text", Array("not a CAR at all\n".utf8))
    // A collection that is not an NSID, in a tree that lacks a node and a record.
    var holed = try TestRepository(posts: 60)
    try holed.add("polka.post/one", ["text": .string("dots")])
    try holed.add("polka.post/two", ["text": .string("stripes")])
    let nodes = try holed.blocks().filter { MSTNode.isLikely($0.bytes.span) }
    holed.omitted = Set([nodes.first?.cid, holed.cid(of: "polka.post/two")].compactMap { $0 })
    try folder.write("holed.car", try holed.car())
    // Invalid records.
    var odd = try TestRepository(posts: 1)
    odd.rev = "3lscuqc52or5x"
    odd.add("a.b.c/bytes", bytes: [0xa0, 0x01])
    odd.add("a.b.c/float", bytes: try DAGCBOREncoder.encode(.map(["x": .float(1.5)])))
    try folder.write("odd.car", try odd.car())
    // Records that end too soon, or are too deep.
    var cutOff = try TestRepository(posts: 1)
    cutOff.add("a.b.c/cut", bytes: [0xa1, 0x61])
    cutOff.add("a.b.c/deep", bytes: [UInt8](repeating: 0x81, count: 300) + [0x01])
    try folder.write("cut-record.car", try cutOff.car())
    // A key that leads elsewhere.
    var hostile = try TestRepository(posts: 1)
    hostile.add("../../x", bytes: [0xa0])
    try folder.write("hostile.car", try hostile.car())
    // A signature as libraries make it, and not AT Protocol.
    var der = try TestRepository(posts: 1)
    der.signature = [UInt8](repeating: 1, count: 71)
    try folder.write("der.car", try der.car())
    // A commit of version 2.
    var old = try TestRepository(posts: 1)
    old.rev = nil
    try folder.write("old.car", try old.car())
    // Sizes that no sum of them fits, and a media type that would rule the terminal.
    var wild = TestRepository()
    for number in 0..<3 {
      try wild.add(
        "a.b.c/\(number)", blob: .blob([UInt8(number)]), mimeType: "a\u{1b}[2Jb\nc", size: .max)
    }
    try folder.write("wild.car", try wild.car())
    // A backup of an account as a folder, with a blob that is a CAR itself.
    var nested = try TestRepository(posts: 1)
    try nested.add("a.b.c/car", blob: .blob(car), mimeType: "application/vnd.ipld.car")
    try folder.write("nested.car", try nested.car())
    try folder.write("carblobs/x", car)
    try folder.write(
      "did.json",
      Array(#"{"id": "\#(repository.did)", "alsoKnownAs": ["at://alice.test"]}"#.utf8))
    try folder.write("other.json", Array(#"{"id": "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"}"#.utf8))
    // A folder backup of the common shape.
    try folder.write("backup/alice.car", car)
    try folder.write("backup/\(CID.blob(image)).png", image)
    try folder.write("backup/\(CID.blob(photo)).jpeg", photo)
  }
}
