package import ATProtocol
package import IPLD

/// The manifest as JSON.
extension Snapshot {
  /// The content of `backup-metadata.json`: the same for the same snapshot, whenever it is
  /// extracted.
  package func metadataJSON(head: CID?) -> [UInt8] {
    var json = JSONWriter(pretty: true)
    json.beginObject()
    json.field("archiveHead", head.map { "\($0)" })
    writeFields(to: &json)
    json.endObject()
    json.newline()
    return json.takeBytes()
  }

  /// Writes the snapshot's facts as keys and values into an object that has begun.
  package func writeFields(to json: inout JSONWriter) {
    json.field("did", did.text)
    json.field("handle", handle?.text)
    json.field("pds", pds)
    json.field("rev", rev?.text)
    json.field("commit", "\(commit)")
    json.field("previous", previous.map { "\($0)" })
    json.field("createdAt", createdAt)
    json.field("tool", tool)
    json.field("complete", isWhole)
    json.beginObject("counts")
    json.field("records", counts.records)
    json.field("nodes", counts.nodes)
    json.field("blocks", counts.blocks)
    if let recordBlocks = counts.recordBlocks { json.field("recordBlocks", recordBlocks) }
    json.endObject()
    json.beginObject("blobs")
    json.field("referenced", blobs.referenced)
    json.field("held", blobs.held)
    json.field("heldBytes", Int(clamping: blobs.heldBytes))
    json.field("missing", blobs.missing)
    json.field("extras", blobs.extras)
    json.field("extrasBytes", Int(clamping: blobs.extrasBytes))
    if let listed = blobs.listed { json.field("listed", listed) }
    if blobs.listedMissing > 0 { json.field("listedMissing", blobs.listedMissing) }
    if blobs.accepted > 0 { json.field("accepted", blobs.accepted) }
    if let fault = blobs.listFault {
      json.key("listFault")
      fault.write(to: &json)
    }
    if let new = blobs.new { json.field("new", new) }
    if let newBytes = blobs.newBytes { json.field("newBytes", Int(clamping: newBytes)) }
    json.endObject()
    json.beginObject("car")
    json.field("bytes", Int(clamping: car.byteCount))
    json.field("sha256", car.sha256.map { "\($0)" })
    json.field("blocks", Int(clamping: car.sectionCount))
    json.endObject()
    if unreadable.count > 0 {
      json.beginObject("unreadable")
      json.field("records", unreadable.count)
      json.field("partlySearched", unreadable.partlySearchedCount)
      json.endObject()
    }
    standing.writeFields(to: &json)
    if let fetched {
      json.beginObject("fetched")
      json.field("kind", fetched.since == nil ? "full" : "incremental")
      if let since = fetched.since { json.field("since", since.text) }
      if let rev = fetched.repoRev { json.field("repoRev", rev) }
      if let leftOut = fetched.leftOut {
        json.beginObject("leftOut")
        json.field("blocks", leftOut.blocks)
        json.field("bytes", leftOut.bytes)
        json.endObject()
      }
      json.endObject()
    }
    json.beginObject("host")
    json.field("os", hostSystem)
    json.field("durationMs", durationMilliseconds)
    json.endObject()
  }
}

extension Standing {
  /// Writes what speaks against a snapshot, and what of that was accepted, if anything does.
  package func writeFields(to json: inout JSONWriter) {
    for (name, doubts) in [("doubts", doubts), ("accepted", accepted)] where !doubts.isEmpty {
      json.beginArray(name)
      for doubt in doubts.map(\.rawValue).sorted() { json.string(doubt) }
      json.endArray()
    }
  }
}

extension ListFault {
  /// Writes it as an object.
  package func write(to json: inout JSONWriter) {
    json.beginObject()
    json.field("reason", reason.rawValue)
    json.field("why", sentence)
    if let status { json.field("status", status) }
    json.field("transient", isTransient)
    json.endObject()
  }
}
