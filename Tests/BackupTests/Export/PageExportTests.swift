import ATProtocol
import Archive
import Foundation
import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Extraction

@Suite struct `Plain pages` {
  private func export(_ packed: Packed, replacing: Bool = false) throws -> PageExporter.Report {
    try PageExporter.export(
      packed.snapshot, to: FilePath(packed.folder.file("pages")), replacing: replacing,
      observer: { _ in })
  }

  private func page(_ packed: Packed, _ name: String) throws -> String {
    String(decoding: try packed.folder.read("pages/\(name)"), as: UTF8.self)
  }

  private func add(_ path: String, _ json: String, to repository: inout TestRepository) throws {
    try repository.add(path, #require(DataModelJSON.decode(Array(json.utf8)).map))
  }

  private static let picture = Array("not really a picture, but nobody asks".utf8)
  private static let pictureCID = CID(codec: .raw, hashing: picture.span)

  private static func image(_ cid: CID, _ type: String = "image/png") -> String {
    #"{"$type": "blob", "ref": {"$link": "\#(cid)"}, "mimeType": "\#(type)", "size": 9}"#
  }

  @Test func `have the posts of each month with their media, and all other records`() throws {
    var repository = TestRepository()
    try add(
      "app.bsky.feed.post/3jzfcijpj2z2a",
      """
      {"$type": "app.bsky.feed.post", "text": "see example.com, Zoë", "langs": ["de"],
       "createdAt": "2023-06-30T23:59:59Z", "tags": ["one", "two"],
       "facets": [{"index": {"byteStart": 4, "byteEnd": 15},
        "features": [{"$type": "app.bsky.richtext.facet#link", "uri": "https://example.com/a?b=c&d"}]}],
       "embed": {"$type": "app.bsky.embed.images", "images": [
        {"alt": "a \\"picture\\"", "image": \(Self.image(Self.pictureCID)),
         "aspectRatio": {"width": 640, "height": 480}}]}}
      """, to: &repository)
    try add(
      "app.bsky.feed.post/3jzfcijpj2z2b",
      """
      {"$type": "app.bsky.feed.post", "text": "and more", "createdAt": "2023-07-01T00:00:00Z",
       "reply": {"parent": {"uri": "at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.feed.post/3jzfcijpj2z2a"}},
       "labels": {"values": [{"val": "nudity"}]},
       "embed": {"$type": "app.bsky.embed.images", "images": [
        {"alt": "lost", "image": \(Self.image(.blob([1])))}]}}
      """, to: &repository)
    try add(
      "app.bsky.feed.like/3jzfcijpj2z2c",
      #"{"createdAt": "2023-07-02T00:00:00Z", "subject": {"uri": "at://did:plc:abc/app.bsky.feed.post/3jzfcijpj2z2d", "cid": "c"}}"#,
      to: &repository)
    repository.add("com.example.other/x", bytes: [0xff])
    let packed = try Packed(car: try repository.car(), blobs: ["p.png": Self.picture])
    let report = try export(packed)
    #expect(report.posts == 2 && report.others == 2 && report.media == 1)
    #expect(report.missingMedia == 1 && report.missingRecords == 1 && report.flaws.isEmpty)
    #expect(try packed.folder.read("pages/media/\(Self.pictureCID).png") == Self.picture)
    let june = try page(packed, "2023-06.html")
    #expect(june.contains(">30 June 2023, 23:59 UTC<"))
    #expect(june.contains(#"href="https://example.com/a?b=c&amp;d""#), "\(june)")
    #expect(june.contains("see <a") && june.contains("</a>, Zoë"), "\(june)")
    #expect(
      june.contains(
        #"<img src="media/\#(Self.pictureCID).png" alt="a &quot;picture&quot;" width="640" height="480""#
      ), "\(june)")
    #expect(june.contains(#"lang="de""#) && june.contains("#one #two"))
    let july = try page(packed, "2023-07.html")
    #expect(july.contains(#"href="2023-06.html#3jzfcijpj2z2a""#), "\(july)")
    #expect(july.contains("Content warning: nudity"))
    #expect(july.contains("This picture is missing:") && july.contains("Its description: lost"))
    let index = try page(packed, "index.html")
    #expect(index.contains(#"<a href="2023-06.html">June 2023</a>"#), "\(index)")
    let likes = try page(packed, "app.bsky.feed.like-2023.html")
    #expect(likes.contains("at://did:plc:abc/app.bsky.feed.post/3jzfcijpj2z2d"))
    for name in try FileManager.default.contentsOfDirectory(atPath: packed.folder.file("pages")) {
      guard name.hasSuffix(".html") else { continue }
      #expect(!(try page(packed, name)).contains("<script"), "\(name)")
    }
  }

  @Test(arguments: [
    #"<script>alert(1)</script>"#, #""><img src=x onerror=alert(1)>"#, "</title><script>",
    "'><svg/onload=1>", "\u{0}\u{1}\u{8}", "&lt;b&gt;", "javascript:alert(1)", "\u{202e}gnp.exe",
    "--><script>", "]]><x>",
  ])
  func `show hostile text as text`(_ text: String) throws {
    var repository = TestRepository()
    var json = JSONWriter()
    json.string(text)
    let quoted = String(decoding: json.takeBytes(), as: UTF8.self)
    try add(
      "app.bsky.feed.post/1",
      """
      {"text": \(quoted), "createdAt": \(quoted), "langs": [\(quoted)], "tags": [\(quoted)],
       "labels": {"values": [{"val": \(quoted)}]}, "reply": {"parent": {"uri": \(quoted)}},
       "facets": [{"index": {"byteStart": 0, "byteEnd": 1}, "features": [{"uri": \(quoted)}]},
        {"index": {"byteStart": 0, "byteEnd": 1}, "features": [{"did": \(quoted)}]},
        {"index": {"byteStart": -5, "byteEnd": 900}, "features": []}],
       "embed": {"images": [{"alt": \(quoted), "image": \(Self.image(.blob([1])))},
         {"alt": \(quoted), "image": \(Self.image(Self.pictureCID, "text/html"))}],
        "video": {"$type": "blob", "mimeType": \(quoted), "ref": {"$link": "\(Self.pictureCID)"}},
        "external": {"uri": \(quoted), "title": \(quoted), "description": \(quoted)},
        "record": {"uri": \(quoted)}}}
      """, to: &repository)
    try add(
      "app.bsky.actor.profile/self",
      #"{"displayName": \#(quoted), "description": \#(quoted)}"#, to: &repository)
    try add(
      "a.b.c/1", #"{"subject": \#(quoted), "name": \#(quoted), "title": 1}"#, to: &repository)
    let packed = try Packed(car: try repository.car(), blobs: ["p.png": Self.picture])
    let report = try export(packed)
    #expect(report.media == 0, "nothing that is no picture lies beside the pages")
    for name in try FileManager.default.contentsOfDirectory(atPath: packed.folder.file("pages")) {
      guard name.hasSuffix(".html") else { continue }
      let html = try page(packed, name)
      let tags = html.split(separator: "<").dropFirst().map { $0.prefix { $0 != ">" && $0 != " " } }
      let known: Set<Substring> = [
        "!doctype", "html", "head", "meta", "link", "title", "/title", "/head", "body", "/body",
        "/html", "nav", "/nav", "a", "/a", "h1", "/h1", "h2", "/h2", "header", "/header", "p", "/p",
        "div", "/div", "article", "/article", "details", "/details", "summary", "/summary", "time",
        "/time", "ul", "/ul", "li", "/li", "span", "/span", "br", "blockquote", "/blockquote",
        "pre", "/pre", "figure", "/figure", "img", "figcaption", "/figcaption",
      ]
      #expect(Set(tags).isSubset(of: known), "\(name): \(Set(tags).subtracting(known))")
      #expect(!html.contains("href=\"javascript"), "\(name)")
      #expect(!html.contains("\u{0}") && !html.contains("\u{8}"))
    }
  }

  @Test func `have what is left of a tree that is not all there`() throws {
    var repository = try TestRepository(posts: 300)
    let nodes = try repository.blocks().filter { block in
      let bytes = block.bytes
      return (try? MSTNode(bytes.span)).map { !$0.entries.isEmpty && $0.left == nil } ?? false
    }
    repository.omitted = [nodes[nodes.count / 2].cid]
    let packed = try Packed(car: try repository.car())
    let report = try export(packed)
    #expect(report.missingNodes == 1 && report.flaws.isEmpty)
    #expect(report.posts > 200 && report.posts < 300, "\(report.posts)")
  }

  @Test func `replace nothing unless they are told to`() throws {
    let packed = try Packed(car: try TestRepository(posts: 3).car())
    _ = try export(packed)
    #expect(throws: (any Error).self) { try export(packed) }
    _ = try export(packed, replacing: true)
  }
}
