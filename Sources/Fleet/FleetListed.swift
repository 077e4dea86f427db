package import ATProtocol

/// An account as a host lists it.
package struct FleetListed: Equatable, Sendable {
  /// Which.
  package var did: DID
  /// Its newest revision, if the host says.
  package var rev: String?
  /// What it is, by the host's word.
  package var state: FleetOutcome.State

  /// An account.
  package init(did: DID, rev: String?, state: FleetOutcome.State) {
    (self.did, self.rev, self.state) = (did, rev, state)
  }
}
