package import IPLD

/// What exports look for in records.
extension IPLDValue {
  /// The value and all values in it, each before those inside it.
  package var descendants: some Sequence<IPLDValue> {
    sequence(state: [self]) { waiting in
      let next = waiting.popLast()
      waiting += (next?.array ?? next?.map?.entries.map(\.value) ?? []).reversed()
      return next
    }
  }

  /// The first text under one of these keys that is not empty.
  func text(_ keys: String...) -> String? {
    keys.lazy.compactMap { self[$0]?.string }.first { !$0.isEmpty }
  }

  /// The blob that a map refers to, in today's form or in that of 2022.
  var blobCID: CID? {
    if let link = self["ref"]?.link { return link }
    guard self["mimeType"]?.string != nil else { return nil }
    return self["cid"]?.string.flatMap { try? CID($0) }
  }

  /// The texts in the list under a key.
  func texts(_ key: String) -> [String] { (self[key]?.array ?? []).compactMap(\.string) }

  /// What a post shows in addition to a quote.
  var shownMedia: IPLDValue? { self["embed"]?["media"] ?? self["embed"] }

  /// The record that a post quotes.
  var quotedURI: String? {
    let embedded = self["embed"]?["record"]
    return (embedded?["record"] ?? embedded)?["uri"]?.string
  }

  /// The labels that a post's author has given it.
  var labels: [String] {
    (self["labels"]?["values"]?.array ?? []).compactMap { $0["val"]?.string }
  }
}
