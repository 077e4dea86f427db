public import ATProtocol
internal import IPLD

/// The manifest as JSON.
extension Snapshot {
  /// The content of `backup-metadata.json`: the same for the same snapshot, whenever it is extracted.
  func metadataJSON(head: CID?) -> [UInt8] {
    var json = JSONWriter(pretty: true)
    json.beginObject()
    json.key("archiveHead")
    if let head { json.string("\(head)") } else { json.null() }
    writeFields(to: &json)
    json.endObject()
    json.newline()
    return json.takeBytes()
  }

  /// Writes the snapshot's facts as keys and values into an object that has begun.
  public func writeFields(to json: inout JSONWriter) {
    func text(_ key: String, _ value: String?) {
      json.key(key)
      if let value { json.string(value) } else { json.null() }
    }
    func number(_ key: String, _ value: Int) {
      json.key(key)
      json.integer(value)
    }
    text("did", did.text)
    text("handle", handle?.text)
    text("pds", pds)
    text("rev", rev?.text)
    text("commit", "\(commit)")
    text("previous", previous.map { "\($0)" })
    text("createdAt", createdAt)
    text("tool", tool)
    json.key("complete")
    json.boolean(isWhole)
    json.key("counts")
    json.beginObject()
    number("records", counts.records)
    number("nodes", counts.nodes)
    number("blocks", counts.blocks)
    if let recordBlocks = counts.recordBlocks { number("recordBlocks", recordBlocks) }
    json.endObject()
    json.key("blobs")
    json.beginObject()
    number("referenced", blobs.referenced)
    number("held", blobs.held)
    number("heldBytes", Int(clamping: blobs.heldBytes))
    number("missing", blobs.missing)
    number("extras", blobs.extras)
    number("extrasBytes", Int(clamping: blobs.extrasBytes))
    if let listed = blobs.listed { number("listed", listed) }
    if blobs.listedMissing > 0 { number("listedMissing", blobs.listedMissing) }
    if blobs.accepted > 0 { number("accepted", blobs.accepted) }
    if let fault = blobs.listFault {
      json.key("listFault")
      fault.write(to: &json)
    }
    if let new = blobs.new { number("new", new) }
    if let newBytes = blobs.newBytes { number("newBytes", Int(clamping: newBytes)) }
    json.endObject()
    json.key("car")
    json.beginObject()
    number("bytes", Int(clamping: car.byteCount))
    text("sha256", car.sha256.map { "\($0)" })
    number("blocks", Int(clamping: car.sectionCount))
    json.endObject()
    if unreadable.count > 0 {
      json.key("unreadable")
      json.beginObject()
      number("records", unreadable.count)
      number("partlySearched", unreadable.partlySearchedCount)
      json.endObject()
    }
    if let fetched {
      json.key("fetched")
      json.beginObject()
      text("kind", fetched.since == nil ? "full" : "incremental")
      if let since = fetched.since { text("since", since.text) }
      if let rev = fetched.repoRev { text("repoRev", rev) }
      if let leftOut = fetched.leftOut {
        json.key("leftOut")
        json.beginObject()
        number("blocks", leftOut.blocks)
        number("bytes", leftOut.bytes)
        json.endObject()
      }
      json.endObject()
    }
    json.key("host")
    json.beginObject()
    text("os", hostSystem)
    number("durationMs", durationMilliseconds)
    json.endObject()
  }
}

extension ListFault {
  /// Writes it as an object.
  public func write(to json: inout JSONWriter) {
    json.beginObject()
    json.key("reason")
    json.string(reason.rawValue)
    json.key("why")
    json.string(sentence)
    if let status {
      json.key("status")
      json.integer(status)
    }
    json.key("transient")
    json.boolean(isTransient)
    json.endObject()
  }
}
