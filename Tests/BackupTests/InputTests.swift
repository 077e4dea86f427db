import ATProtocol
import Foundation
import IPLD
import LibC
internal import Snapshots
import TestSupport
import Testing

@testable import Files
@testable import Packing

@Suite struct `A folder of blobs` {
  @Test func `that fails while it is listed is an error, and not the end of the folder`() throws {
    for failure in [EIO, 0] {
      var rest = ["a", ".", "b", ".."][...]
      let list = {
        try BlobFolder.names(in: "in") {
          if rest.isEmpty { errno = failure }
          return rest.popFirst()
        }
      }
      if failure == 0 {
        #expect(try list() == ["a", "b"])
      } else {
        #expect(throws: BackupError.system("read the folder in", EIO)) { try list() }
      }
    }
  }

  @Test func `is searched in all its folders, and links to folders are not followed`() throws {
    let temporary = try TemporaryFolder()
    for name in ["a", "b/c", "b/d/e.png", ".hidden"] { try temporary.write("in/\(name)", [1]) }
    try temporary.write("elsewhere/x", [2])
    let links = [("in/link", "elsewhere"), ("in/file", "elsewhere/x"), ("in/dead", "nowhere")]
    for (link, target) in links {
      try FileManager.default.createSymbolicLink(
        atPath: temporary.file(link), withDestinationPath: temporary.file(target))
    }
    try FileManager.default.createSymbolicLink(
      atPath: temporary.file("in/b/loop"), withDestinationPath: temporary.file("in"))
    let names = [".hidden", "a", "b/c", "b/d/e.png", "file"]
    #expect(
      try BlobFolder(temporary.file("in")).files() == names.map { temporary.file("in/\($0)") })
    #expect(throws: BackupError.self) { try BlobFolder(temporary.file("none")).files() }
    #expect(throws: BackupError.self) { try BlobFolder(temporary.file("in/a")).files() }
  }

  @Test func `of an account is not searched for what an extraction wrote beside the blobs`() throws
  {
    let temporary = try TemporaryFolder()
    let blob = CID.blob([1])
    for name in [
      "x/alice-3.car", "x/backup-metadata.json", "x/did-document.json", "x/plc-audit-log.json",
      "x/records/a.b.c/1.json", "x/blobs/\(blob).png",
    ] { try temporary.write(name, [1]) }
    let folder = BlobFolder(temporary.path, isAccountFolder: true)
    #expect(try folder.files() == [temporary.file("x/blobs/\(blob).png")])
    #expect(try folder.cars() == [temporary.file("x/alice-3.car")])
    #expect(try BlobFolder(temporary.path).files().count == 6)
  }

  @Test func `may hold a blob that is a CAR itself`() throws {
    let temporary = try TemporaryFolder()
    let blob = CID.blob([1])
    try temporary.write("alice-3.car", [1])
    try temporary.write("blobs/\(blob).car", [1])
    let folder = BlobFolder(temporary.path, isAccountFolder: true)
    #expect(try folder.files() == [temporary.file("blobs/\(blob).car")])
    #expect(try folder.cars() == [temporary.file("alice-3.car")])
  }

  @Test func `knows which names are CIDs`() {
    let cid = CID.blob([1])
    for name in ["\(cid)", "\(cid).jpg", "/some/where/\(cid).tar.gz", "a/\(cid)."] {
      #expect(BlobFolder.claimedCID(name) == cid)
    }
    for name in ["", ".", "photo.jpg", "\(cid)x.jpg", "x\(cid)", "\(cid)/x.jpg", "a.\(cid)"] {
      #expect(BlobFolder.claimedCID(name) == nil, "\(name)")
    }
    #expect(BlobFolder.claimedCID("\(cid)".uppercased()) != cid)
  }
}

@Suite struct `What is to be packed` {
  @Test func `is a CAR, and folders beside it`() throws {
    let temporary = try TemporaryFolder()
    let car = try temporary.write("repo.car", try TestRepository(posts: 1).car())
    let input = try PackInput(car, blobFolders: ["x", "y"])
    #expect(input.folders.map(\.path) == ["x", "y"])
    #expect(input.car.name == car)
    #expect(throws: BackupError.self) { try PackInput(temporary.file("none"), blobFolders: []) }
  }

  @Test func `is a folder with one CAR and what is known about the account`() throws {
    let temporary = try TemporaryFolder()
    try temporary.write("out/did/repo.car", try TestRepository(posts: 1).car())
    try temporary.write("out/did/did-document.json", Array("{}".utf8))
    try temporary.write("out/did/plc-audit-log.json", Array("[]".utf8))
    try temporary.write(
      "out/did/backup-metadata.json",
      Array(#"{"handle": "alice.test", "pds": "https://pds.test", "more": [1]}"#.utf8))
    let input = try PackInput(temporary.file("out"), blobFolders: [])
    #expect(input.car.name == temporary.file("out/did/repo.car"))
    #expect(input.facts.handle?.text == "alice.test")
    #expect(input.facts.pds == "https://pds.test")
    #expect(input.facts.didDocument == Array("{}".utf8))
    #expect(input.facts.plcLog == Array("[]".utf8))
    try temporary.write("out/did/backup-metadata.json", Array(#"{"handle": null}"#.utf8))
    #expect(try PackInput(temporary.file("out"), blobFolders: []).facts.handle == nil)
  }

  @Test func `is not a folder with no CAR, or two`() throws {
    let temporary = try TemporaryFolder()
    #expect(throws: BackupError.carsInFolder(temporary.path, [])) {
      try PackInput(temporary.path, blobFolders: [])
    }
    let one = try temporary.write("1.car", [])
    let two = try temporary.write("sub/2.car", [])
    #expect(throws: BackupError.carsInFolder(temporary.path, [one, two])) {
      try PackInput(temporary.path, blobFolders: [])
    }
  }
}
