internal import ATProtocol

/// An object that a verb writes with --json, and what it is about.
///
/// Every object says what it is in its first two fields: `schema`, `carpack.NAME`, and `version`.
/// The version is raised when a field goes or changes its meaning; a new field leaves it.
struct Report<Subject>: Sendable {
  private static var version: Int { 1 }

  /// What stands behind `carpack.`.
  let name: String
  /// What `Docs/JSON.md` says of the object.
  let about: String
  let fields: Fields<Subject>

  init(_ name: String, _ about: String, @FieldList<Subject> _ fields: () -> [Field<Subject>]) {
    (self.name, self.about) = (name, about)
    let schema = "carpack.\(name)"
    let (all, version) = (fields(), Self.version)
    self.fields = Fields {
      Field("schema", "what the object is", .one(of: schema)) { _ in schema }
      Field("version", "\(version)") { _ in version }
      all
    }
  }

  /// Prints an object of results: a line, or indented with --pretty.
  func print(_ subject: Subject) {
    var json = JSONWriter(pretty: Console.isPretty)
    write(subject, to: &json)
    Console.print(json.takeBytes().span)
  }

  /// Says an object on standard error, always in one line.
  func say(_ subject: Subject) {
    var json = JSONWriter()
    fields.write(subject, to: &json)
    Console.put(line: String(decoding: json.takeBytes(), as: UTF8.self))
  }

  /// An object as a line.
  func line(_ subject: Subject) -> [UInt8] {
    var json = JSONWriter()
    write(subject, to: &json)
    return json.takeBytes()
  }

  /// Writes the object and ends the line.
  func write(_ subject: Subject, to json: inout JSONWriter) {
    fields.write(subject, to: &json)
    json.newline()
  }

  var description: ReportDescription {
    ReportDescription(name: name, about: about, table: fields.table)
  }
}
