public import ATProtocol

/// An account as a host lists it.
public struct FleetListed: Equatable, Sendable {
  /// Which.
  public var did: DID
  /// Its newest revision, if the host says.
  public var rev: String?
  /// What it is.
  public var state: FleetOutcome.State

  /// An account.
  public init(did: DID, rev: String?, state: FleetOutcome.State) {
    (self.did, self.rev, self.state) = (did, rev, state)
  }
}
