internal import ATProtocol
internal import Archive
package import Files
internal import IPLD
package import Snapshots

/// Writing what is known of the account beside its repository.
extension SnapshotExtractor {
  mutating func writeMetadata() throws {
    let snapshot = archived.snapshot
    let metadata = snapshot.metadataJSON(head: archived.cid)
    try write([ExtractedName.metadata]) { sink in try sink(metadata.span) }
    for (cid, name) in [
      (snapshot.didDocument, ExtractedName.didDocument), (snapshot.plcLog, ExtractedName.plcLog),
    ] {
      guard let cid else { continue }
      let reader = archived.reader
      try write([name]) { sink in
        guard try reader.read(cid, each: sink) else { throw SnapshotError.blockMissing(cid) }
      }
    }
  }

  /// Writes what is the account owner's alone: each answer as it was received, for the owner's
  /// eyes.
  mutating func writePrivateData() throws {
    let entries: [PrivateData.Entry]
    do {
      entries = try archived.privateData()?.entries ?? []
    } catch let error where error.isDamage {
      return report.damaged.append(("private data", "\(error)"))
    }
    report.lacksPrivateData = entries.allSatisfy(\.answers.isEmpty)
    for entry in entries {
      if let fault = entry.fault, fault.kind != .notGiven {
        report.missing.append("private data, \(entry.endpoint): \(fault.why)")
        missingPrivateCount += 1
      }
      let isLines = entry.contentType.map { $0.contains("jsonl") || $0.contains("ndjson") } ?? false
      let ending = isLines ? ".jsonl" : ".json"
      for (index, answer) in entry.answers.enumerated() {
        let page = entry.answers.count > 1 ? "-\(index + 1)" : ""
        let name = FileNaming.component(
          Array((entry.endpoint + page).utf8)[...], ending: ending, for: options.target)
        let archived = archived
        try write(["private", name], isPrivate: true) { try archived.readPrivate(answer, to: $0) }
      }
    }
  }
}

extension FileNaming {
  /// The file of a snapshot's CAR: handle or DID, then the revision; a commit of version 2 has none
  /// and gives its CID.
  package static func car(of snapshot: Snapshot, for target: Target = .unix) -> String {
    let owner = snapshot.handle?.text ?? account(snapshot.did, for: target)
    let revision = snapshot.rev?.text ?? "\(snapshot.commit)"
    return name(owner, ending: "-\(revision).car")
  }
}
