internal import ATProtocol
internal import Files
package import SystemPackage

/// The description of a report, without a subject.
package struct ReportDescription: Sendable {
  package let name: String
  package let about: String
  package let table: ReportTable

  package init(name: String, about: String, table: ReportTable) {
    (self.name, self.about, self.table) = (name, about, table)
  }

  /// Writes `JSON.md` and `schemas/NAME.schema.json` of all reports into a folder.
  ///
  /// Reports with the same name are the alternative forms of one object.
  package static func write(_ all: [ReportDescription], into folder: FilePath) throws {
    var names: [String] = []
    for report in all where !names.contains(report.name) { names.append(report.name) }
    for name in names {
      let forms = all.filter { $0.name == name }
      try save(schema(name, forms), as: folder.appending("schemas/\(name).schema.json"))
    }
    try save(Array(markdown(names, all).utf8), as: folder.appending("JSON.md"))
  }

  private static func save(_ bytes: [UInt8], as path: FilePath) throws {
    try AtomicFile.save(to: path, replacing: true) { sink in try sink(bytes.span) }
  }

  private static func schema(_ name: String, _ forms: [ReportDescription]) -> [UInt8] {
    var json = JSONWriter(pretty: true)
    json.beginObject()
    json.field("$schema", "https://json-schema.org/draft/2020-12/schema")
    json.field("title", "carpack.\(name)")
    if forms.count == 1 {
      forms[0].table.writeSchema(to: &json)
    } else {
      json.beginArray("oneOf")
      for form in forms {
        json.beginObject()
        form.table.writeSchema(to: &json)
        json.endObject()
      }
      json.endArray()
    }
    json.endObject()
    json.newline()
    return json.takeBytes()
  }

  private static let introduction = """
    # JSON

    <!-- Written by `make schemas` from the reports in Sources/carpack; change them there. -->

    A verb that takes `--json` writes its results as JSON to standard output: one object a line, for one
    archive and for many, and for events. `--pretty` indents them for people. Each object says what it
    is: `schema` is `carpack.NAME`, with the JSON Schema in [schemas/](schemas/); `version` is 1. The
    version is raised when a field goes or changes its meaning; a new field may come at any time. Sizes
    are integers, in bytes; times are RFC 3339; CIDs are text. A field that is not optional is always
    there, and null if nothing is known.

    Standard error has one object a line as well: an [error](#carpackerror), or a
    [message](#carpackmessage). The exit status is the same with and without `--json`.

    """

  private static func markdown(_ names: [String], _ all: [ReportDescription]) -> String {
    let head = ["| field | type | meaning |", "|---|---|---|"]
    var lines = [introduction]
    for name in names {
      lines += ["## carpack.\(name)", ""]
      for form in all where form.name == name {
        // What all objects begin with is said above.
        let own = ReportTable(title: nil, rows: Array(form.table.rows.dropFirst(2)))
        lines += [form.about, ""] + head + own.markdown() + [""]
      }
    }
    lines += ["## Shared objects", ""]
    var titles: Set<String> = []
    for table in all.flatMap(\.table.titled) {
      guard let title = table.title, titles.insert(title).inserted else { continue }
      lines += ["### \(title)", ""] + head + table.markdown() + [""]
    }
    return lines.joined(separator: "\n")
  }
}
