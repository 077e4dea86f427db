internal import IPLD
package import Snapshots
internal import TestSupport

extension Snapshot {
  /// A snapshot with a value in every field, each another, put together as the document of the
  /// format has it.
  package static func example() throws -> Snapshot {
    let bytes = try DAGCBOREncoder.encode(.map(exampleMap))
    return try Snapshot(bytes.span)
  }

  private static var exampleMap: IPLDMap {
    func link(_ text: String) -> IPLDValue { .link(.blob(Array(text.utf8))) }
    return [
      "carpack": .integer(1), "did": .string("did:plc:ewvi7nxzyoun6zhxrhs64oiz"),
      "handle": .string("alice.test"), "pds": .string("https://pds.test"),
      "rev": .string("3lscuqc52or2x"), "commit": link("commit"), "prev": link("previous"),
      "createdAt": .string("2026-01-02T03:04:05Z"), "tool": .string("carpack 0"),
      "car": .map([
        "header": .bytes([1, 2, 3]), "bytes": .integer(12_345),
        "sha256": .bytes([UInt8](repeating: 9, count: 32)), "blocks": .integer(99),
        "order": .map(["kind": .string("absolute"), "runs": .bytes([0, 99])]),
      ]),
      "counts": .map(["records": .integer(40), "nodes": .integer(12), "blocks": .integer(53)]),
      "blobs": .map([
        "referenced": .integer(7), "held": .integer(5), "heldBytes": .integer(5000),
        "missing": .integer(2), "extras": .integer(3), "extrasBytes": .integer(3000),
        "listed": .integer(9), "listedMissing": .integer(1), "new": .integer(4),
        "newBytes": .integer(4000),
      ]),
      "fetched": .map([
        "since": .string("3lscuqc52or2w"), "repoRev": .string("3lscuqc52or2y"),
        "leftOut": .map(["blocks": .integer(11), "bytes": .integer(2_000_000)]),
      ]),
      "identity": .map(["didDocument": link("document"), "plcLog": link("log")]),
      "extras": .array([link("extras")]),
      "missing": .array([link("missing 1"), link("missing 2")]),
      "unreadable": .map(["records": .integer(6), "partlySearched": .integer(2)]),
      "complete": .boolean(true),
      "host": .map(["os": .string("Linux"), "durationMs": .integer(321)]),
    ]
  }
}
