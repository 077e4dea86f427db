package import IPLD

/// The result of verifying an archive.
package struct ArchiveVerification: Equatable, Sendable {
  /// How bad something is.
  package enum Severity: Int, Comparable, Sendable {
    /// Bytes follow the last footer: an unfinished write, or foreign bytes. Nothing that is
    /// committed is touched.
    case interruptedTail
    /// A section under a hash function that is unknown here.
    case unverifiable
    /// Something is not what was written, or not what the format allows.
    case damaged

    /// The order of badness.
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// One thing that was found.
  package struct Finding: Equatable, Sendable, CustomStringConvertible {
    /// How bad it is.
    package let severity: Severity
    /// What it is, and where.
    package let error: ArchiveError

    /// The message for people.
    package var description: String { error.description }
  }

  /// What was committed.
  package let generation: Generation
  /// Whether sections were hashed, or only what is stored compared with its checksums.
  package let isComplete: Bool
  /// What was found, in the order of the file.
  package internal(set) var findings: [Finding] = []
  /// How many findings there are, also of those that were not kept.
  package internal(set) var findingCount = 0
  /// The sections that are damaged, as far as their CIDs can be told.
  package internal(set) var damagedSections: [CID] = []
  /// The numbers of sections that are lost in damaged frames; some of them may be among
  /// `damagedSections`.
  package internal(set) var damagedOrdinals: [Range<UInt64>] = []
  /// The sections that cannot be verified.
  package internal(set) var unverifiableSections: [CID] = []
  /// How many sections cannot be verified.
  package internal(set) var unverifiableCount: UInt64 = 0
  /// How many sections are in order.
  package internal(set) var sectionCount: UInt64 = 0
  /// How many data frames hold.
  package internal(set) var frameCount: UInt64 = 0
  /// How many bytes of the file were examined.
  package internal(set) var byteCount: UInt64 = 0
  /// How many of these no longer count: damage that was repaired around, or written again
  /// elsewhere.
  package internal(set) var supersededBytes: UInt64 = 0

  /// The worst thing that was found; nil if nothing was.
  package internal(set) var worst: Severity?

  /// Whether nothing is damaged and nothing follows the last footer; sections that cannot
  /// be verified may be there.
  package var isIntact: Bool { worst == nil || worst == .unverifiable }
}

extension ArchiveVerification {
  /// Puts the findings into the order of the file; those without a place come first.
  mutating func sortFindings() {
    let order = findings.indices.sorted {
      (findings[$0].error.offset ?? 0, $0) < (findings[$1].error.offset ?? 0, $1)
    }
    findings = order.map { findings[$0] }
  }

  /// Records something that is wrong.
  mutating func note(
    _ reason: ArchiveError.Reason, at offset: UInt64?, _ severity: Severity = .damaged
  ) {
    note(ArchiveError(reason, offset: offset), severity)
  }

  mutating func note(_ error: ArchiveError, _ severity: Severity = .damaged) {
    findingCount += 1
    worst = max(worst ?? severity, severity)
    if findings.count < Survey.listLimit {
      findings.append(Finding(severity: severity, error: error))
    }
  }

  mutating func noteDamaged(_ cid: CID, at offset: UInt64?) {
    if damagedSections.count < Survey.listLimit { damagedSections.append(cid) }
    note(.damagedSection(cid), at: offset)
  }

  mutating func noteDamaged(_ ordinals: Range<UInt64>) {
    guard !ordinals.isEmpty, damagedOrdinals.count < Survey.listLimit,
      ordinals.upperBound > damagedOrdinals.last?.upperBound ?? 0
    else { return }
    if let last = damagedOrdinals.last, last.upperBound == ordinals.lowerBound {
      damagedOrdinals[damagedOrdinals.count - 1] = last.lowerBound..<ordinals.upperBound
    } else {
      damagedOrdinals.append(ordinals)
    }
  }

  mutating func noteUnverifiable(_ cid: CID, at offset: UInt64?) {
    unverifiableCount += 1
    if unverifiableSections.count < Survey.listLimit {
      unverifiableSections.append(cid)
      note(.unverifiableSection(cid), at: offset, .unverifiable)
    }
  }
}
