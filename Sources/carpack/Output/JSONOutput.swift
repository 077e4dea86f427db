internal import ATProtocol
internal import Reports
internal import Terminal

/// What an object of the output is: its fields are those of `Docs/schemas/NAME.schema.json`.
enum OutputSchema: String {
  case backup, compact, config, diff, error, extract, fetch, find, identity, info, inspect, log, ls
  case merge, message, acceptance, missing, pack, prune, pull, push, record, repair, resolve,
    salvage, stats
  case status, verify
  case verifyProof = "verify-proof"
  case export, serve, restore
  case recoveryKey = "recovery-key"
  case fleetAdd = "fleet-add"
  case fleetStatus = "fleet-status"
  case fleetWork = "fleet-work"

  /// What the field `schema` says.
  var name: String { "carpack.\(rawValue)" }

  /// What the field `version` says.
  ///
  /// It is raised when a field goes or changes its meaning; a new field leaves it.
  var version: Int { 1 }
}

extension JSONWriter {
  /// A writer of results: an object a line, or indented with --pretty.
  static var ofResults: JSONWriter { JSONWriter(pretty: Console.isPretty) }

  /// Begins an object of the output, and says what it is.
  mutating func begin(_ schema: OutputSchema) {
    beginObject()
    field("schema", schema.name)
    field("version", schema.version)
  }
}

extension Console {
  /// Prints an object of results.
  static func printJSON(
    _ schema: OutputSchema, _ writeFields: (inout JSONWriter) throws -> Void
  ) rethrows {
    var json = JSONWriter.ofResults
    json.begin(schema)
    try writeFields(&json)
    finish(&json)
  }

  /// Ends the object that a report is, and prints it.
  static func finish(_ json: inout JSONWriter) {
    json.endObject()
    json.newline()
    print(&json)
  }

  /// Prints what a JSON writer has.
  static func print(_ json: inout JSONWriter) { print(json.takeBytes().span) }

  /// Says an object on standard error, always in one line.
  static func sayJSON(_ schema: OutputSchema, _ writeFields: (inout JSONWriter) -> Void) {
    var json = JSONWriter()
    json.begin(schema)
    writeFields(&json)
    json.endObject()
    put(line: String(decoding: json.takeBytes(), as: UTF8.self))
  }
}
