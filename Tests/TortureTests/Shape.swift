import ArchiveTestSupport
import TestSupport
import Testing

/// A shape, and whether the archives are sealed.
struct ScenarioKind: CustomTestStringConvertible {
  let shape: Shape
  let isSealed: Bool

  /// All of them; every day sealed archives have one shape, because they take longer.
  static let all: [ScenarioKind] = [false, true].flatMap { isSealed in
    Shape.allCases.filter { !isSealed || Torture.seconds != nil || $0 == .several }
      .map { ScenarioKind(shape: $0, isSealed: isSealed) }
  }

  var testDescription: String { isSealed ? "\(shape), sealed" : "\(shape)" }
}

/// What kind of backups a scenario is made of, and which of them are disturbed.
enum Shape: String, CaseIterable, CustomTestStringConvertible {
  /// Three backups with sections of many sizes, the later ones of things that are there already,
  /// too.
  case several
  /// The same, with frequent checkpoints that come by themselves.
  case checkpoints
  /// So many backups that index segments are merged: in the last three, which are disturbed.
  case merges
  /// Two backups with a section of several frames.
  case large

  func scenario(using random: inout SeededGenerator, _ image: ArchiveImage, seal: TestSeal? = nil)
    throws -> Scenario
  {
    switch self {
    case .several: try Scenario(steps(3, using: &random), using: image, seal: seal)
    case .checkpoints:
      try Scenario(
        steps(2, hasCheckpoints: true, using: &random), checkpointLength: 5000, using: image,
        seal: seal)
    case .merges:
      try Scenario((0..<16).map { _ in .tiny(using: &random) }, using: image, seal: seal)
    case .large:
      try Scenario(steps(2, large: 4 << 20 + 5000, using: &random), using: image, seal: seal)
    }
  }

  /// The steps that are disturbed.
  func disturbed(_ scenario: Scenario) -> Range<Int> {
    self == .merges ? scenario.steps.count - 3..<scenario.steps.count : scenario.steps.indices
  }

  private func steps(
    _ count: Int, large: Int = 70_000, hasCheckpoints: Bool = false,
    using random: inout SeededGenerator
  ) -> [BackupStep] {
    var steps: [BackupStep] = []
    for _ in 0..<count {
      let old = steps.flatMap(\.sections)
      steps.append(
        .full(using: &random, large: large, old: old, hasCheckpoints: hasCheckpoints))
    }
    return steps
  }

  var testDescription: String { rawValue }
}
