internal import ATProtocol
package import IPLD
package import Snapshots

/// The texts of others, as an app view showed them.
extension ContextItem {
  /// The record of a post; nil if the item has none, or its text is not JSON.
  package var record: IPLDValue? {
    guard case .post(let post) = content else { return nil }
    do throws(JSONError) { return try DataModelJSON.decode(Array(post.record.utf8)) } catch {
      return nil
    }
  }

  /// Every text that was shown: names and description, or all texts of a record.
  package var texts: [String] {
    switch content {
    case .person(let person):
      [person.displayName, person.handle?.text, person.description].compactMap(\.self)
    case .post: record?.descendants.compactMap(\.string) ?? []
    case .absent: []
    }
  }

  /// A summary in one line: a person's handle and name, or a post's text.
  package var summary: String {
    switch content {
    case .person(let person):
      [person.handle.map { "@\($0.text)" }, person.displayName].compactMap(\.self)
        .joined(separator: "  ")
    case .post: record?["text"]?.string ?? ""
    case .absent(let absence): "[\(absence.sentence)]"
    }
  }

  /// Writes the item as an object.
  ///
  /// - Parameter file: the name of the file that has a thumbnail.
  func write(to json: inout JSONWriter, file: (CID) -> String) {
    json.beginObject()
    json.field(isPerson ? "person" : "post", subject.text)
    switch content {
    case .person(let person):
      json.field("handle", person.handle?.text)
      json.field("displayName", person.displayName)
      json.field("description", person.description)
      json.field("avatar", person.avatar.map { file($0.piece) })
    case .post(let post):
      json.field("cid", "\(post.cid)")
      json.key("record")
      if let record { record.writeJSON(to: &json) } else { json.string(post.record) }
      json.field("thumbnails", post.thumbnails.map { file($0.piece) })
      json.field("signed", post.proof != nil)
    case .absent(let absence): json.field("absent", absence.rawValue)
    }
    json.field("seenFrom", seenFrom)
    json.field("seenAt", seenAt)
    json.field("askedAt", askedAt)
    json.endObject()
  }

  /// Whether the item is about an account.
  package var isPerson: Bool { if case .person = subject { true } else { false } }
}

extension ContextItem.Absence {
  /// The sentence for people.
  package var sentence: String {
    switch self {
    case .notFound: "the app view did not show it"
    case .withheld: "shown to logged-in users only"
    case .tooLarge: "too large to be kept"
    }
  }
}

extension TextPattern {
  /// The first text that matches the pattern, as much as fits in a line; nil if none does.
  package func firstMatch(in texts: [String]) -> String? { texts.lazy.compactMap(excerpt).first }
}
