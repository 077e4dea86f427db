public import ATProtocol
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
  /// Single things.
  public var items: [Item] = []

  /// One thing, named.
  public enum Item: Equatable, Sendable {
    /// A block or blob.
    case cid(CID)
    /// A record.
    case record(RecordPath)

    /// Reads a CID, `collection/rkey`, or `at://` and an account in front of that.
    ///
    /// - Throws: ``BackupError`` for anything else; an AT URI that belongs to another account is not found, which is said later.
    public init(_ text: String) throws {
      if text.hasPrefix("at://") {
        if let path = Self.parse(text, ATURI.init)?.path {
          self = .record(path)
          return
        }
      } else if let cid = Self.parse(text, { text throws(CIDError) in try CID(text) }) {
        self = .cid(cid)
        return
      } else if let path = Self.parse(text, RecordPath.init) {
        self = .record(path)
        return
      }
      throw BackupError.malformedSelector(text)
    }

    private static func parse<Value, Failure: Error>(
      _ text: String, _ parser: (String) throws(Failure) -> Value
    ) -> Value? {
      do {
        return try parser(text)
      } catch {
        return nil
      }
    }
  }

  /// Nothing selected.
  public init() {}

  /// Everything.
  public static var all: Selection {
    var selection = Selection()
    (selection.car, selection.records, selection.blobs, selection.metadata) = (
      true, true, true, true
    )
    return selection
  }
}
