import Foundation
import IPLD
import SystemPackage
import TestSupport
import Testing

@Suite struct `The example in the documentation` {
  @Test func `restores a blob`() throws {
    let blob = [UInt8](repeating: 7, count: 5 << 20)
    var repository = TestRepository()
    try repository.add("a.b.c/1", blob: .blob(blob))
    let packed = try Packed(car: repository.car(), blobs: ["x": blob])
    let file = packed.folder.file("restored")
    #expect(try restoreBlob(.blob(blob), from: packed.path, to: FilePath(file)))
    #expect(try packed.folder.read("restored") == blob)
    #expect(throws: Errno.fileExists) {
      try restoreBlob(.blob(blob), from: packed.path, to: FilePath(file))
    }
    let other = packed.folder.file("other")
    #expect(try !restoreBlob(.blob([1]), from: packed.path, to: FilePath(other)))
  }

  @Test func `is the code that is tested`() throws {
    func text(_ path: String) throws -> String {
      try String(contentsOf: URL(filePath: "\(Command.packageRoot)/\(path)"), encoding: .utf8)
    }
    let code = try text("Tests/BackupTests/RestoreBlobExample.swift")
    let article = try text("Sources/Archive/Archive.docc/Archive.md")
    #expect(article.contains("```swift\n\(code)```"))
  }
}
