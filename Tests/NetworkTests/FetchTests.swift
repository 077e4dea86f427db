import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Fetching pieces of an account` {
  private let scene: NetworkScene

  init() throws { scene = try NetworkScene(posts: 5, blobs: 1, blobSize: 5000) }

  private func fetch(_ what: String, _ more: String = "") throws -> Command.Result {
    let parts = what.split(separator: " ", maxSplits: 1)
    let rest = parts.count > 1 ? parts[1] : ""
    return try scene.command.run(
      "carpack fetch \(parts[0]) \(scene.account.did) \(rest) \(scene.flags) \(more)")
  }

  @Test func `gives the repository as the server sends it`() throws {
    let result = try fetch("repo", "-o repo.car")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try scene.folder.read("repo.car") == scene.account.car())
  }

  @Test
  func `fetches a repository again that does not arrive whole, and ends so that it is tried again`()
    throws
  {
    scene.server.play(FaultRule(.distorted(.shortened(to: 0.5)), on: "getRepo", times: 1))
    #expect(try fetch("repo", "-o repo.car").status == 0)
    scene.server.play(FaultRule(.distorted(.shortened(to: 0.5)), on: "getRepo"))
    let result = try fetch("repo", "-o other.car")
    #expect(result.status == 75, "\(result.errors)")
    #expect(result.errors.contains("did not arrive whole, 3 times"), "\(result.errors)")
    #expect(scene.folder.names() == ["repo.car"])
  }

  @Test func `gives a blob`() throws {
    let cid = try #require(scene.account.referencedBlobs.first)
    let result = try fetch("blob \(cid)", "-o blob")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try CID.blob(scene.folder.read("blob")) == cid)
  }

  @Test func `lists blobs as far as the server's list goes`() throws {
    let cid = try #require(scene.account.referencedBlobs.first)
    for (paging, status) in [(Behaviour.Paging.emptyPages, 0), (.loop, 10), (.garbled, 10)] {
      scene.server.behaviour.paging = paging
      let result = try fetch("blobs")
      #expect(result.status == Int32(status), "\(result.errors)")
      #expect(result.text == "\(cid)\n")
      #expect(result.errors.contains("the list broke off after 2 entries") == (paging == .loop))
      #expect(result.errors.contains("not CIDs (4)") == (paging == .garbled))
    }
  }

  @Test func `takes no more of either than is wanted`() throws {
    let cid = try #require(scene.account.referencedBlobs.first)
    for (what, option) in [("repo", "--max-repo"), ("blob \(cid)", "--max-blob")] {
      let result = try fetch(what, "-o piece \(option) 1kB")
      #expect(result.status == 13, "\(result.errors)")
      #expect(result.errors.contains("more than 1000 bytes"))
      #expect(result.errors.contains(option))
    }
    #expect(scene.folder.names().isEmpty)
  }
}
