import ArgumentParser

/// The program.
@main
struct StandIn: ParsableCommand {
  func run() throws {}
}
