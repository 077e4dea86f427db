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

  /// Nothing selected.
  package init() {}

  /// Everything but ``privateData``.
  package static var all: Selection {
    var selection = Selection()
    (selection.car, selection.records, selection.blobs, selection.metadata) = (
      true, true, true, true
    )
    return selection
  }
}
