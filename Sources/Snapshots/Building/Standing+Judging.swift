package import ATProtocol
internal import Archive
internal import IPLD

extension Standing {
  /// How a snapshot's repository follows from those that the archive has.
  ///
  /// - Parameters:
  ///   - draft: what the manifest is to say of the new one.
  ///   - archived: the account's snapshot before; nil if it has none.
  ///   - newest: the revision that the server said was its newest; nil if it was not asked, or did
  ///     not say.
  ///   - accepting: what the user accepts.
  ///   - now: the moment, in RFC 3339 and UTC.
  /// - Throws: as reading the history of the archive does.
  package static func of(
    _ draft: Snapshot, after archived: ArchivedSnapshot?, newest: TID? = nil,
    accepting: Set<Doubt>, now: String
  ) throws -> Standing {
    var standing = Standing()
    if let rev = draft.rev {
      if let newest, rev.text < newest.text { standing.doubts.insert(.behind) }
      let latest = UnixTime(now)?.advanced(by: SignatureVerdict.clockTolerance)
      if let latest, latest < UnixTime(rev) { standing.doubts.insert(.future) }
    }
    guard let archived else { return standing }
    let base = archived.snapshot
    for doubt: Doubt in [.rollback, .fork] where base.standing.doubts.contains(doubt) {
      standing.add(doubt, accepting: accepting)
    }
    if draft.commit == base.commit, base.standing.doubts.contains(.unsigned) {
      standing.doubts.insert(.unsigned)
    }
    guard let rev = draft.rev, draft.commit != base.commit else { return standing }
    if let before = base.rev, rev.text < before.text {
      standing.add(.rollback, accepting: accepting)
    }
    let same = try SnapshotHistory(of: archived.reader).entries
      .filter { $0.did == base.did && $0.rev == rev && $0.isVouched }
    if !same.isEmpty, !same.contains(where: { $0.commit == draft.commit }) {
      standing.add(.fork, accepting: accepting)
    }
    return standing
  }
}
