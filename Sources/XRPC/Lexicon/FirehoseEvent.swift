package import ATProtocol
internal import HTTP
internal import IPLD

/// An event of `com.atproto.sync.subscribeRepos`: which account has changed, and how.
///
/// A message is two values of DAG-CBOR, one after the other: a header `{"op": 1, "t": "#commit"}`,
/// or `{"op": -1}` for an error, and the body.
///
/// Source: [Event Stream](https://atproto.com/specs/event-stream).
package enum FirehoseEvent: Equatable, Sendable {
  /// An account has a new revision.
  case revision(DID, rev: String, sequence: Int64)
  /// An account's state or identity has changed.
  case change(DID, sequence: Int64)
  /// An event of another kind.
  case other(sequence: Int64?)
  /// The server no longer has the events after the cursor, and continues with what it has: its
  /// words.
  case outdatedCursor(String)
  /// The server ends the stream, because the cursor is later than its newest event: its words.
  case futureCursor(String)
  /// The server ends the stream for another reason, such as `ConsumerTooSlow`: its words.
  case failure(String)

  /// How long a header may be, in bytes.
  private static let longestHeader = 128

  /// Reads a message; nil if it is malformed.
  package init?(_ message: [UInt8]) {
    guard let (header, rest) = Self.header(of: message), let body = Self.value(rest[...]) else {
      return nil
    }
    switch header["op"]?.integer {
    case 1: break
    case -1:
      let name = body["error"]?.string ?? "an error without a name"
      let words = Self.words(name, of: body)
      self = name == "FutureCursor" ? .futureCursor(words) : .failure(words)
      return
    // What a client does not know, it is to ignore.
    default:
      self = .other(sequence: nil)
      return
    }
    // They begin at 1.
    let sequence = body["seq"]?.integer.flatMap { $0 < 0 ? nil : Int64($0) }
    let kind = header["t"]?.string
    if kind == "#info", let name = body["name"]?.string, name == "OutdatedCursor" {
      self = .outdatedCursor(Self.words(name, of: body))
      return
    }
    guard let sequence, let text = body["repo"]?.string ?? body["did"]?.string,
      let did = Self.did(text)
    else {
      self = .other(sequence: sequence)
      return
    }
    switch kind {
    case "#commit", "#sync":
      guard let rev = body["rev"]?.string, Self.isRevision(rev) else {
        self = .other(sequence: sequence)
        return
      }
      self = .revision(did, rev: rev, sequence: sequence)
    case "#account", "#identity": self = .change(did, sequence: sequence)
    default: self = .other(sequence: sequence)
    }
  }

  /// When a message was sent, by the server's clock; nil if it does not say.
  package static func time(of message: [UInt8]) -> UnixTime? {
    header(of: message).flatMap { value($0.1) }?["time"]?.string.flatMap { UnixTime($0) }
  }

  /// A name and the message with it, as a person may read them.
  private static func words(_ name: String, of body: IPLDValue) -> String {
    Excerpt.of(body["message"]?.string.map { "\(name): \($0)" } ?? name)
  }

  private static func header(of message: [UInt8]) -> (IPLDValue, ArraySlice<UInt8>)? {
    // No beginning of a value is a value itself.
    for length in 1...min(longestHeader, max(1, message.count)) {
      if let value = value(message.prefix(length)) { return (value, message.dropFirst(length)) }
    }
    return nil
  }

  private static func value(_ bytes: ArraySlice<UInt8>) -> IPLDValue? {
    let bytes = Array(bytes)
    do {
      return try DAGCBORDecoder.decode(bytes.span)
    } catch {
      return nil
    }
  }

  private static func did(_ text: String) -> DID? {
    do {
      return try DID(text)
    } catch {
      return nil
    }
  }

  private static func isRevision(_ text: String) -> Bool {
    do {
      _ = try TID(text)
      return true
    } catch {
      return false
    }
  }
}
