package import ATProtocol
internal import Terminal

/// An object that a verb writes with --json, and what it is about.
///
/// Every object says what it is in its first two fields: `schema`, `carpack.NAME`, and `version`.
/// The version is raised when a field goes or changes its meaning; a new field leaves it.
package struct Report<Subject>: Sendable {
  private static var version: Int { 1 }

  /// The part of the schema's name after `carpack.`.
  package let name: String
  /// What `Docs/JSON.md` says of the object.
  package let about: String
  package let fields: Fields<Subject>

  package init(
    _ name: String, _ about: String, @FieldList<Subject> _ fields: () -> [Field<Subject>]
  ) {
    (self.name, self.about) = (name, about)
    let schema = "carpack.\(name)"
    let (all, version) = (fields(), Self.version)
    self.fields = Fields {
      Field("schema", "what the object is", .one(of: schema)) { _ in schema }
      Field("version", "\(version)") { _ in version }
      all
    }
  }

  /// An event of a verb that reports its progress, an object a line.
  package init(
    _ name: String, event: String, _ about: String,
    @FieldList<Subject> _ fields: () -> [Field<Subject>]
  ) {
    let own = fields()
    self.init(name, about) {
      Field("event", "", .one(of: event)) { _ in event }
      own
    }
  }

  /// Prints an object of results: a line, or indented with --pretty.
  package func print(_ subject: Subject) {
    var json = JSONWriter.ofResults
    write(subject, to: &json)
    Console.print(json.takeBytes().span)
  }

  /// Prints an object on standard error, always in one line.
  package func say(_ subject: Subject) {
    var json = JSONWriter()
    fields.write(subject, to: &json)
    Console.put(line: String(decoding: json.takeBytes(), as: UTF8.self))
  }

  /// An object as a line.
  package func line(_ subject: Subject) -> [UInt8] {
    var json = JSONWriter()
    write(subject, to: &json)
    return json.takeBytes()
  }

  /// Writes the object and ends the line.
  package func write(_ subject: Subject, to json: inout JSONWriter) {
    fields.write(subject, to: &json)
    json.newline()
  }

  package var description: ReportDescription {
    ReportDescription(name: name, about: about, table: fields.table)
  }
}

extension JSONWriter {
  /// A writer of results: an object a line, or indented with --pretty.
  ///
  /// The caller prints what it holds at the end.
  package static var ofResults: JSONWriter {
    JSONWriter(pretty: Console.isPretty) { Console.print($0.span) }
  }
}
