import ATProtocol
import Foundation
import IPLD
import TestSupport

/// Accounts that are made up, and those that lie in `Fixtures`.
extension StandInAccount {
  /// An account of posts that show blobs of noise.
  ///
  /// - Parameters:
  ///   - name: what all follows from.
  ///   - posts: how many posts there are, or as many as the blobs need, four a post.
  ///   - blobs: how many blobs there are.
  ///   - blobSize: how many bytes each has.
  ///   - large: the sizes of videos, which come in posts of their own.
  package convenience init(
    _ name: String, posts: Int, blobs: Int = 0, blobSize: Int = 10_000, large: [Int] = [],
    did: String? = nil, style: AccountStyle = AccountStyle()
  ) throws {
    try self.init(name, did: did, style: style)
    let posts = max(posts, (blobs + 3) / 4)
    var seed: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in name.utf8 { seed = (seed ^ UInt64(byte)) &* 0x100_0000_01b3 }
    var generator = SeededGenerator(seed: seed)
    var shown = [[BlobContent]](repeating: [], count: posts)
    for number in 0..<blobs {
      shown[number % posts].append(
        BlobContent(
          noise: generator.next(), size: blobSize,
          mimeType: number % 2 == 0 ? "image/jpeg" : "image/png"))
    }
    for size in large {
      shown.append([BlobContent(noise: generator.next(), size: size, mimeType: "video/mp4")])
    }
    let writes = shown.enumerated().map { number, blobs in
      post(
        TID(integer: UInt64(1_740_000_000_000_000 + number * 60_000_000) << 10 | 7).text,
        "\(name), post \(number)", showing: blobs)
    }
    try commit(writes)
  }

  /// An account that lies in a folder as those in `Fixtures` do: `NAME.car`, `NAME-later.car`,
  /// `blobs`, `did-document.json`, `plc-audit-log.json`.
  ///
  /// ``advance()`` continues with the later CAR, and after that with commits that are made up,
  /// signed with the fixture's own key.
  ///
  /// - Throws: if something is missing or is not what it should be.
  package convenience init(folder: String) throws {
    let base = URL(filePath: folder)
    let name = base.lastPathComponent
    let read = { (file: String) in [UInt8](try Data(contentsOf: base.appending(path: file))) }
    var cars = [try read("\(name).car")]
    if FileManager.default.fileExists(atPath: base.appending(path: "\(name)-later.car").path) {
      cars.append(try read("\(name)-later.car"))
    }
    let document = try DataModelJSON.decode(read("did-document.json"))
    guard let alias = document["alsoKnownAs"]?.array?.first?.string, alias.hasPrefix("at://") else {
      throw Malformed(what: "the DID document names no handle")
    }
    let types = try Self.mediaTypes(cars)
    let files = try FileManager.default.contentsOfDirectory(
      atPath: base.appending(path: "blobs").path)
    let blobs = try files.sorted().map { file -> BlobContent in
      let bytes = try read("blobs/\(file)")
      let type = types[CID(codec: .raw, hashing: bytes.span)] ?? "application/octet-stream"
      return BlobContent(bytes, mimeType: type)
    }
    try self.init(
      cars: cars, blobs: blobs, handle: String(alias.dropFirst("at://".count)), document: document,
      auditLog: String(decoding: read("plc-audit-log.json"), as: UTF8.self),
      key: SigningKey(seed: "carpack fixture: \(name)"),
      rotation: SigningKey(seed: "carpack fixture: \(name), rotation"))
  }

  /// What the records in CARs say about the types of blobs.
  private static func mediaTypes(_ cars: [[UInt8]]) throws -> [CID: String] {
    var types: [CID: String] = [:]
    var scanner = BlobRefScanner(profile: .dagCBOR)
    for car in cars {
      let header = try CARHeader(car.span)
      var cursor = CARCursor(header: header, payload: 0..<car.count)
      while let (section, _) = try cursor.next(in: car.span) {
        _ = try scanner.scan(
          car.span.extracting(section.bodyRange), found: { types[$0.cid] = $0.mimeType })
      }
    }
    return types
  }
}
