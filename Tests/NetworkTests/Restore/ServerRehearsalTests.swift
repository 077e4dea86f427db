import IPLD
import StandIn
import TestSupport
import Testing

/// The operator of a server rehearses, while it is there, what is done once it is gone.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Rehearsing a whole server` {
  private static func line(_ scene: ServerScene, _ directory: StandInDirectory, _ more: String = "")
    -> String
  {
    "carpack rehearse --all backups/ --to \(scene.new.url) --rotation-key server.key --admin-password-file admin --accounts members --plc \(directory.url) --resolver \(scene.old.url) --attempts 1 \(more)"
  }

  @Test func `fills a server, compares, and changes nothing else`() throws {
    let scene = try ServerScene(count: 3)
    let scratch = try StandInDirectory()
    scene.new.directory = scratch
    let asked = try scene.command.run(Self.line(scene, scratch))
    #expect(asked.status == 10, "\(asked.text)\(asked.errors)")
    #expect(asked.errors.contains("a rehearsal creates the accounts of 3 archives on "))
    #expect(scene.new.createdCount == 0 && scratch.postCount == 0)
    let result = try scene.command.run(Self.line(scene, scratch, "--yes"))
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.text.contains("3 done"), "\(result.text)")
    #expect(scene.directory.postCount == 0)
    func expectRehearsed() {
      #expect(scene.new.createdCount == 3)
      for account in scene.accounts {
        let there = scene.new.accounts.first { $0.did == account.did }
        #expect(there?.status == .deactivated && there?.paths == account.paths)
        #expect(Set(there?.blobs.keys.map { $0 } ?? []) == account.referencedBlobs)
        #expect(account.status == .active)
      }
    }
    expectRehearsed()
    let operations = scratch.postCount
    let again = try scene.command.run(Self.line(scene, scratch, "--yes"))
    #expect(again.status == 0, "\(again.text)\(again.errors)")
    #expect(scratch.postCount == operations)
    expectRehearsed()
    #expect(!scene.folder.names(under: ".").contains { $0.hasSuffix("all.pem") })
  }

  @Test func `is not fine when one account is not`() throws {
    let scene = try ServerScene(count: 2)
    let scratch = try StandInDirectory()
    scene.new.directory = scratch
    let damaged = scene.accounts[1]
    scene.new.play(FaultRule(.otherContent, on: "getBlob", did: damaged.did))
    let result = try scene.command.run(Self.line(scene, scratch, "--yes"))
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.text.contains("\(scene.accounts[0].did): done\n"), "\(result.text)")
    #expect(result.text.contains("\(damaged.did): done, but it lacks 3 blobs"), "\(result.text)")
  }

  @Test func `takes a directory of its own, and none else`() throws {
    let scene = try ServerScene(count: 1)
    let line = Self.line(scene, scene.directory, "--yes")
    for other in ["", "--plc https://plc.directory/"] {
      let result = try scene.command.run(
        line.replacing("--plc \(scene.directory.url)", with: other))
      #expect(result.status == 64, "\(result.text)\(result.errors)")
      #expect(result.errors.contains("a directory for rehearsals"), "\(result.errors)")
    }
    #expect(scene.new.createdCount == 0)
  }
}
