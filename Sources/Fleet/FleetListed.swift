internal import ATProtocol

/// An account as a host lists it.
struct FleetListed: Sendable {
  let did: DID
  /// Its newest revision, if the host says.
  let rev: String?
  /// What it is, by the host's word.
  let state: FleetOutcome.State
}
