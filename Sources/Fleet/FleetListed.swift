internal import ATProtocol

/// An account as a host lists it.
struct FleetListed: Sendable {
  let did: DID
  /// Its newest revision, if the host says.
  let rev: String?
  /// Its state, according to the host.
  let state: FleetOutcome.State
}
