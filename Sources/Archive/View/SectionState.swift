/// Whether an archive has a section.
package enum SectionState: Sendable {
  /// It is not there.
  case missing
  /// It was there, and what is left does not hold, and why.
  case damaged(ArchiveError)
  /// It is there, as far as was looked at.
  case held(ordinal: UInt64, bodyLength: UInt64)

  /// How many bytes its body has; nil if it cannot be had.
  package var bodyLength: UInt64? {
    if case .held(_, let length) = self { length } else { nil }
  }

  /// Whether something is left of it that does not hold.
  package var isDamaged: Bool { if case .damaged = self { true } else { false } }
}
