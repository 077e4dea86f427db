internal import ATProtocol
package import Files
package import Snapshots

extension FileNaming {
  /// The file of a snapshot's CAR: handle or DID, then the revision; a commit of version 2 has none
  /// and gives its CID.
  package static func car(of snapshot: Snapshot, for target: Target = .unix) -> String {
    let owner = snapshot.handle?.text ?? account(snapshot.did, for: target)
    let revision = snapshot.rev?.text ?? "\(snapshot.commit)"
    return name(owner, ending: "-\(revision).car")
  }
}
