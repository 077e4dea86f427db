package import ATProtocol

/// A field of a report: its name, its meaning, and how to get it from the subject.
///
/// It is defined once: JSON, its schema and `Docs/JSON.md` are generated from it.
package struct Field<Subject>: Sendable {
  /// One row; several where a library writes the fields itself.
  package let rows: [ReportTable.Row]
  /// Writes keys and values, or nothing if the field is left out.
  package let write: @Sendable (Subject, inout JSONWriter) -> Void

  package init(
    _ rows: [ReportTable.Row], write: @escaping @Sendable (Subject, inout JSONWriter) -> Void
  ) { (self.rows, self.write) = (rows, write) }

  /// A field with one value, or with null.
  package init<Value: JSONValue>(
    _ name: String, _ meaning: String, _ form: TextForm? = nil,
    value: @escaping @Sendable (Subject) -> Value
  ) {
    let kind = form.map { Value.kind.with($0) } ?? Value.kind
    self.init([.init(name, kind, meaning)]) { subject, json in
      json.key(name)
      value(subject).write(to: &json)
    }
  }

  /// A field that is left out where there is no value.
  package init<Value: JSONValue>(
    optional name: String, _ meaning: String, _ form: TextForm? = nil,
    value: @escaping @Sendable (Subject) -> Value?
  ) {
    let kind = form.map { Value.kind.with($0) } ?? Value.kind
    self.init([.init(name, kind, meaning, isOptional: true)]) { subject, json in
      guard let value = value(subject) else { return }
      json.key(name)
      value.write(to: &json)
    }
  }

  /// A field with an object.
  package init<Inner>(
    _ name: String, _ meaning: String, _ value: @escaping @Sendable (Subject) -> Inner,
    as fields: Fields<Inner>
  ) {
    self.init([.init(name, .object(fields.table), meaning)]) { subject, json in
      json.key(name)
      fields.write(value(subject), to: &json)
    }
  }

  /// A field with an object, or with null.
  package init<Inner>(
    _ name: String, _ meaning: String, orNull value: @escaping @Sendable (Subject) -> Inner?,
    as fields: Fields<Inner>
  ) {
    self.init([.init(name, .orNull(.object(fields.table)), meaning)]) { subject, json in
      json.key(name)
      if let inner = value(subject) { fields.write(inner, to: &json) } else { json.null() }
    }
  }

  /// A field with an object, left out where there is none.
  package init<Inner>(
    optional name: String, _ meaning: String,
    _ value: @escaping @Sendable (Subject) -> Inner?, as fields: Fields<Inner>
  ) {
    self.init([.init(name, .object(fields.table), meaning, isOptional: true)]) { subject, json in
      guard let inner = value(subject) else { return }
      json.key(name)
      fields.write(inner, to: &json)
    }
  }

  /// A field with a list of objects.
  package init<List: Sequence & SendableMetatype>(
    _ name: String, _ meaning: String, each value: @escaping @Sendable (Subject) -> List,
    as fields: Fields<List.Element>
  ) {
    self.init([.init(name, .list(of: .object(fields.table)), meaning)]) { subject, json in
      json.key(name)
      fields.write(value(subject), to: &json)
    }
  }

  /// A field with a list of objects, left out where there is no list.
  package init<Inner>(
    optional name: String, _ meaning: String,
    each value: @escaping @Sendable (Subject) -> [Inner]?, as fields: Fields<Inner>
  ) {
    self.init(
      [.init(name, .list(of: .object(fields.table)), meaning, isOptional: true)]
    ) { subject, json in
      guard let items = value(subject) else { return }
      json.key(name)
      fields.write(items, to: &json)
    }
  }

  /// A field with objects by name.
  package init<Inner>(
    _ name: String, _ meaning: String,
    byName value: @escaping @Sendable (Subject) -> [String: Inner], as fields: Fields<Inner>
  ) {
    self.init([.init(name, .map(of: .object(fields.table)), meaning)]) { subject, json in
      json.beginObject(name)
      for (key, inner) in value(subject).sorted(by: { $0.key < $1.key }) {
        json.key(key)
        fields.write(inner, to: &json)
      }
      json.endObject()
    }
  }

  /// The same field of a value that contains the subject.
  package func of<Outer>(_ path: @escaping @Sendable (Outer) -> Subject) -> Field<Outer> {
    Field<Outer>(rows) { outer, json in write(path(outer), &json) }
  }
}

/// The fields of an object.
package struct Fields<Subject>: Sendable {
  package let all: [Field<Subject>]
  /// What `Docs/JSON.md` calls the object, if it is described by itself.
  package let title: String?

  package init(_ title: String? = nil, @FieldList<Subject> _ all: () -> [Field<Subject>]) {
    (self.title, self.all) = (title, all())
  }

  package var table: ReportTable { ReportTable(title: title, rows: all.flatMap(\.rows)) }

  /// The fields of a value that contains the subject.
  package func of<Outer>(_ path: @escaping @Sendable (Outer) -> Subject) -> [Field<Outer>] {
    all.map { $0.of(path) }
  }

  /// The fields of a value that may contain the subject, left out where it does not.
  package func optional<Outer>(_ path: @escaping @Sendable (Outer) -> Subject?) -> [Field<Outer>] {
    all.map { field in
      Field<Outer>(field.rows.map(\.optional)) { outer, json in
        if let subject = path(outer) { field.write(subject, &json) }
      }
    }
  }

  /// Writes the object.
  package func write(_ subject: Subject, to json: inout JSONWriter) {
    json.beginObject()
    for field in all { field.write(subject, &json) }
    json.endObject()
  }

  /// Writes a list of such objects.
  package func write(_ subjects: some Sequence<Subject>, to json: inout JSONWriter) {
    json.beginArray()
    for subject in subjects { write(subject, to: &json) }
    json.endArray()
  }
}

/// Fields one below the other, and lists of fields among them.
@resultBuilder
package enum FieldList<Subject> {
  package static func buildExpression(_ field: Field<Subject>) -> [Field<Subject>] { [field] }
  package static func buildExpression(_ fields: [Field<Subject>]) -> [Field<Subject>] { fields }
  package static func buildExpression(_ fields: Fields<Subject>) -> [Field<Subject>] { fields.all }
  package static func buildBlock(_ parts: [Field<Subject>]...) -> [Field<Subject>] {
    parts.flatMap(\.self)
  }
}
