public import Live

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

extension AccountBackup.Options {
  /// Options with the clock and the name of this system.
  ///
  /// - Parameter tool: name and version of the program, which stand in the archive.
  public init(tool: String) {
    #if os(macOS)
      let system = "macOS"
    #else
      let system = "Linux"
    #endif
    let begin = ContinuousClock.now
    self.init(
      tool: tool, hostSystem: system, now: { Date().formatted(.iso8601) },
      milliseconds: { Int((ContinuousClock.now - begin) / .milliseconds(1)) })
  }
}
