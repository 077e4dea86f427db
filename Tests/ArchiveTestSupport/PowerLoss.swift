package import TestSupport

/// What a loss of power does with changes that were not synced.
///
/// A disk keeps each sector as it was, or as it was at some moment since; a file system keeps each
/// length the file had, or one in between; and where the length reached the disk before the data
/// did, there is nothing, or something else altogether.
package struct PowerLoss: Sendable, CustomStringConvertible {
  /// What happens to the changes.
  enum Kind: String, CaseIterable {
    /// All of them reached the disk.
    case keepsAll
    /// None had.
    case dropsAll
    /// They got there in order, up to one of which some sectors are there.
    case tearsOne
    /// Each got there, or did not.
    case reorders
    /// Each sector reached the disk, or did not.
    case scatters
    /// All got there but one sector.
    case dropsOneSector
    /// Nothing got there but the last change.
    case keepsLast
  }

  let kind: Kind
  let seed: UInt64

  /// Every change reached the disk.
  package static let ofNothing = PowerLoss(kind: .keepsAll, seed: 0)
  /// No change did.
  package static let ofEverything = PowerLoss(kind: .dropsAll, seed: 0)

  /// A loss of any kind.
  package init(using random: inout SeededGenerator) {
    kind = Kind.allCases.randomElement(using: &random) ?? .scatters
    seed = random.next()
  }

  private init(kind: Kind, seed: UInt64) {
    self.kind = kind
    self.seed = seed
  }

  /// What a person reads.
  package var description: String { "power loss that \(kind.rawValue) by seed \(seed)" }
}
