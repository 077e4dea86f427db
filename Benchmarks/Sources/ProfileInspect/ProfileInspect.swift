import Archive
import ArgumentParser
import Repository
import SystemPackage

/// Inspects a CAR and does nothing else: what a profiler is to look at.
@main
struct ProfileInspect: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "profile-inspect",
    abstract: "Inspect a CAR and say how long that took.")

  @Option(help: "How often.")
  var times = 1

  @Flag(help: "Leave out hashing the blocks.")
  var withoutHashing = false

  @Argument(help: "The CAR.")
  var file: String

  func run() throws {
    let car = try MappedFile(FilePath(file))
    for _ in 0..<times {
      let start = ContinuousClock.now
      let found = try RepositoryInspection(of: CARFile(car, verifying: !withoutHashing))
      let duration = ContinuousClock.now - start
      print("\(duration): \(found.sectionCount) blocks, \(found.recordCount) records")
    }
  }
}
