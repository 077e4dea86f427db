internal import ATProtocol
public import IPLD

/// What to extract from an archive, or show of it.
public struct Selection: Sendable {
  /// The CAR.
  public var car = false
  /// Every record, as JSON.
  public var records = false
  /// Every blob, extras included.
  public var blobs = false
  /// What is known about the snapshot and the account.
  public var metadata = false
  /// What is the account owner's alone; never a part of everything.
  public var privateData = false
  /// Single things.
  public var items: [Item] = []

  /// One thing, named.
  public enum Item: Hashable, Sendable {
    /// A block or blob.
    case cid(CID)
    /// A record, by its key in the tree, `collection/rkey`.
    case record(String)

    /// Reads a CID, `collection/rkey`, or `at://` and an account in front of that.
    ///
    /// - Throws: ``BackupError`` for anything else; an AT URI that belongs to another account is
    ///   not found, which is said later.
    public init(_ text: String) throws {
      switch try Selector(text) {
      case .cid(let cid): self = .cid(cid)
      case .records(let pattern, _):
        guard let path = pattern.exactPath else { throw BackupError.malformedSelector(text) }
        self = .record(path)
      case .cidPrefix: throw BackupError.malformedSelector(text)
      }
    }
  }

  /// Whether everything is selected, be it with ``privateData`` or without.
  public var isAll: Bool { car && records && blobs && metadata }

  /// Nothing selected.
  public init() {}

  /// Everything but ``privateData``.
  public static var all: Selection {
    var selection = Selection()
    (selection.car, selection.records, selection.blobs, selection.metadata) = (
      true, true, true, true
    )
    return selection
  }
}
