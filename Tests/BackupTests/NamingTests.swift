import ATProtocol
import ArchiveTestSupport
internal import Extraction
import Files
import IPLD
import Snapshots
import SystemPackage
import TestSupport
import Testing

@Suite struct `Names of files` {
  @Test func `are the identifiers themselves where a file system can hold them`() {
    #expect(FileNaming.name("3k2a", ending: ".json") == "3k2a.json")
    #expect(FileNaming.name("did:plc:abc") == "did:plc:abc")
    let longest = String(repeating: "a", count: FileNaming.maximumLength - 5)
    #expect(FileNaming.name(longest, ending: ".json") == longest + ".json")
  }

  @Test(arguments: [236, 255, 256, 317, 512, 2048])
  func `are never longer than a file system allows, and none is another's`(length: Int) {
    var names: Set<String> = []
    for last in ["a", "b", "A", ":", "~"] {
      let text = String(repeating: "x", count: length - 1) + last
      for ending in [".json", ".cbor"] {
        let name = FileNaming.name(text, ending: ending)
        #expect(name.utf8.count <= FileNaming.maximumLength)
        #expect(name.hasSuffix(ending))
        #expect(name.contains("+"))
        names.insert(name)
      }
    }
    #expect(names.count == 10)
  }

  @Test(arguments: ["語", "e\u{301}", "👩‍👩‍👧‍👦", "ä", "a\u{200d}語"], [80, 120, 300])
  func `are counted in bytes, and cut between two characters`(letter: String, count: Int) throws {
    let text = String(repeating: letter, count: count)
    let name = FileNaming.name(text, ending: ".car.zst")
    #expect(name.utf8.count <= FileNaming.maximumLength)
    if text.utf8.count > FileNaming.maximumLength {
      let kept = try #require(name.split(separator: "+").first)
      #expect(text.hasPrefix(kept) || text.unicodeScalars.starts(with: kept.unicodeScalars))
      #expect(kept.utf8.count > 110 && !kept.contains("\u{fffd}"))
    }
  }

  @Test(arguments: ["語", "e\u{301}", "👩‍👩‍👧‍👦"])
  func `as long as a file system takes leave room for a temporary one`(letter: String) throws {
    let folder = try TemporaryFolder()
    var name = ".car.zst"
    while name.utf8.count + letter.utf8.count <= 255 { name = letter + name }
    let path = FilePath(folder.file(name))
    try AtomicFile.save(to: path, replacing: false) { try $0([1].span) }
    try AtomicFile.save(to: path, replacing: true) { try $0([2].span) }
    #expect(try folder.read(name) == [2])
    let next = try AtomicFile(FilePath(folder.file("漢" + name.dropFirst())), replacing: false)
    _ = try next.storage { _ in true }
    try next.publish()
  }

  @Test func `that are shortened are no identifier's own name`() throws {
    let short = FileNaming.name(String(repeating: "x", count: 512))
    #expect((try? RecordKey(short)) == nil)
    #expect((try? NSID(short)) == nil)
    #expect((try? DID(short)) == nil)
  }

  @Test func `are kept to the letter`() throws {
    // A change here would give files of an earlier extraction other names.
    let key = String(repeating: "k", count: 512)
    let digest = SHA256.digest(of: Array(key.utf8).span)
    #expect(
      FileNaming.name(key, ending: ".json")
        == String(repeating: "k", count: 120) + "+" + Base32.encode(digest.bytes.span) + ".json")
  }

  @Test func `for any file system spell neither a device nor what Windows does not take`() {
    func name(_ text: String, _ ending: String = "") -> String {
      FileNaming.component(Array(text.utf8)[...], ending: ending, for: .any)
    }
    #expect(name("app.bsky.feed.post") == "app.bsky.feed.post")
    #expect(name("at:x", ".json") == "at%3Ax.json")
    for device in ["con", "NUL", "com1", "LPT9", "aux.b"] {
      #expect(name(device).hasPrefix("%") && name(device, ".json").hasPrefix("%"))
    }
    #expect(name("console", ".json") == "console.json")
    #expect(name("com", ".json") == "com.json")
    #expect(name("a.") == "a%2E")
    #expect(name("a.", ".json") == "a..json")
    #expect(FileNaming.component(Array("at:x".utf8)[...]) == "at:x")
  }

  @Test func `of accounts have no colon where there may be none`() throws {
    let did = try DID("did:plc:ewvi7nxzyoun6zhxrhs64oiz")
    #expect(FileNaming.account(did, for: .unix) == did.text)
    #expect(FileNaming.account(did, for: .any) == "did-plc-ewvi7nxzyoun6zhxrhs64oiz")
    let web = try DID("did:web:localhost%3A2583")
    #expect(FileNaming.account(web, for: .any) == "did-web-localhost%253A2583")
  }

  @Test func `of parts of keys are never each other's`() {
    var names: Set<String> = []
    let parts: [ArraySlice<UInt8>?] = [
      nil, [], Array("%".utf8)[...], Array("%-".utf8)[...], Array("-".utf8)[...],
      Array("%25".utf8)[...], [0x25], [0x25, 0x32, 0x35], [0xe9], Array("\u{e9}".utf8)[...],
    ]
    for part in Set(parts) {
      for target in [FileNaming.Target.unix, .any] {
        let name = FileNaming.component(part, for: target)
        #expect(target == .any || names.insert(name).inserted)
        #expect(name.utf8.allSatisfy { 0x21...0x7e ~= $0 && $0 != UInt8(ascii: "/") })
      }
    }
  }

  @Test func `of CARs have the handle and the revision, or else the DID and the commit`() throws {
    var snapshot = try Snapshot.example()
    snapshot.handle = try Handle("alice.test")
    #expect(FileNaming.car(of: snapshot) == "alice.test-3lscuqc52or2x.car")
    snapshot.handle = nil
    #expect(FileNaming.car(of: snapshot) == "\(snapshot.did.text)-3lscuqc52or2x.car")
    snapshot.rev = nil
    #expect(FileNaming.car(of: snapshot) == "\(snapshot.did.text)-\(snapshot.commit).car")
    snapshot.did = try DID("did:web:" + String(repeating: "a", count: 2000))
    let name = FileNaming.car(of: snapshot)
    #expect(name.utf8.count <= FileNaming.maximumLength)
    #expect(name.hasSuffix("-\(snapshot.commit).car"))
  }
}

@Suite struct `The ending of a blob's file` {
  private func ending(_ mimeType: String?, _ content: [UInt8]) -> String {
    MediaType.fileExtension(mimeType: mimeType, beginning: content.span)
  }

  private func signature(_ content: [UInt8]) -> String? { MediaType.signature(of: content.span) }

  @Test func `follows the media type where the content has no signature`() {
    let text = Array("hello".utf8)
    #expect(ending("text/plain", text) == "txt")
    #expect(ending("TEXT/Plain; charset=utf-8", text) == "txt")
    #expect(ending("application/x-nobody-knows", text) == "bin")
    #expect(ending(nil, text) == "bin")
    #expect(ending("../../etc/passwd", text) == "bin")
    #expect(ending("", []) == "bin")
  }

  @Test func `follows the content where that is something else`() {
    #expect(ending("image/jpeg", SampleFile.png("x")) == "png")
    #expect(ending("image/png", SampleFile.jpeg("x")) == "jpg")
    #expect(ending(nil, SampleFile.jpeg("x")) == "jpg")
    #expect(ending("application/octet-stream", SampleFile.png("x")) == "png")
    #expect(ending("*/*", SampleFile.png("x")) == "png")
  }

  @Test func `stays with the media type among kinds that share a container`() {
    let mp4 = [0, 0, 0, 0x18] + Array("ftypisom".utf8)
    #expect(ending("video/mp4", mp4) == "mp4")
    #expect(ending("video/quicktime", mp4) == "mov")
    #expect(ending("image/jpeg", mp4) == "mp4")
    #expect(ending("video/x-matroska", [0x1a, 0x45, 0xdf, 0xa3]) == "mkv")
    #expect(ending("video/ogg", Array("OggS".utf8)) == "ogv")
  }

  // The compiler takes many seconds to infer the type.
  private static let signatures: [(String, [UInt8])] = [
    ("jpg", [0xff, 0xd8, 0xff]),
    ("png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    ("gif", Array("GIF89a".utf8)), ("gif", Array("GIF87a".utf8)),
    ("webp", Array("RIFF\0\0\0\0WEBP".utf8)), ("wav", Array("RIFF\0\0\0\0WAVE".utf8)),
    ("avif", Array("\0\0\0\u{18}ftypavif".utf8)), ("heic", Array("\0\0\0\u{18}ftypheic".utf8)),
    ("mov", Array("\0\0\0\u{18}ftypqt  ".utf8)), ("m4a", Array("\0\0\0\u{18}ftypM4A ".utf8)),
    ("webm", [0x1a, 0x45, 0xdf, 0xa3]), ("pdf", Array("%PDF-1.7".utf8)),
    ("ogg", Array("OggS".utf8)), ("flac", Array("fLaC".utf8)), ("mp3", Array("ID3".utf8)),
    ("vtt", Array("WEBVTT".utf8)), ("zip", [0x50, 0x4b, 3, 4]), ("jxl", [0xff, 0x0a]),
    ("tiff", [0x49, 0x49, 0x2a, 0]), ("tiff", [0x4d, 0x4d, 0, 0x2a]),
  ]

  @Test(arguments: signatures)
  func `is known from a signature, and from nothing less`(ending: String, content: [UInt8]) {
    #expect(signature(content) == ending)
    for count in 0..<min(content.count, 2) { #expect(signature(Array(content[..<count])) == nil) }
  }
}
