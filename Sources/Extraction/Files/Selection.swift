internal import Files
package import IPLD

/// What to extract from an archive, or show of it.
package struct Selection: Sendable {
  /// The CAR.
  package var car = false
  /// Every record, as JSON.
  package var records = false
  /// Every blob, extras included.
  package var blobs = false
  /// What is known about the snapshot and the account.
  package var metadata = false
  /// What is the account owner's alone; never a part of everything.
  package var privateData = false
  /// Single things.
  package var items: [Item] = []

  /// One thing, named.
  package enum Item: Hashable, Sendable {
    /// A block or blob.
    case cid(CID)
    /// A record, by its key in the tree, `collection/rkey`.
    case record(String)
  }

  /// Whether everything is selected, be it with ``privateData`` or without.
  package var isAll: Bool { car && records && blobs && metadata }

  /// Everything but ``privateData``.
  package static let all = {
    var all = Selection()
    (all.car, all.records, all.blobs, all.metadata) = (true, true, true, true)
    return all
  }()

  /// Nothing selected.
  package init() {}
}

/// How things are extracted.
package struct ExtractionOptions: Sendable {
  /// What blobs are called.
  package enum Names: String, CaseIterable, Sendable {
    /// By their CIDs.
    case cid
    /// By the day, the key and the words of the record that refers to them.
    case readable
  }

  /// What blobs are called.
  package var names = Names.cid
  /// Whether files get the times of the records.
  package var setsTimes = true
  /// Whether files go that carpack wrote there, and that belong to the snapshot no longer.
  package var isDeleting = false

  /// As by default.
  package init() {}

  /// What has to take the names.
  var target: FileNaming.Target { names == .readable ? .any : .unix }
}
