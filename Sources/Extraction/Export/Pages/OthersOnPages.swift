internal import ATProtocol
internal import IPLD
internal import Snapshots

/// What app views have shown of others, for pages that would otherwise show bare addresses.
struct OthersOnPages {
  /// The names of people, by their DIDs.
  private var names: [String: String] = [:]
  /// What posts say, by their URIs, and when that was seen.
  private var posts: [String: (text: String, seen: String)] = [:]

  /// How many characters of a post are shown.
  private static let maximumText = 500

  /// Nothing.
  init() {}

  /// What a snapshot has.
  ///
  /// - Throws: ``SnapshotError`` and `ArchiveError` if it is damaged.
  init(of archived: ArchivedSnapshot) throws {
    try archived.forEachContextItem { item in
      switch item.content {
      case .person(let person):
        let handle = person.handle.map { "@\($0.text)" }
        let name = [person.displayName, handle].compactMap(\.self).joined(separator: " ")
        if !name.isEmpty { names[item.subject.text] = name }
      case .post:
        guard let text = item.record?["text"]?.string else { return }
        posts[item.subject.text] = (String(text.prefix(Self.maximumText)), item.seenAt)
      case .absent: break
      }
    }
  }

  /// A link to an account or a record of another: its name, and of a post what it said, marked as
  /// another's.
  ///
  /// - Parameter text: what the link says if nothing is known.
  func reference(to uri: String, called text: String? = nil) -> HTML {
    let author = String(uri.dropFirst("at://".count).prefix { $0 != "/" })
    let name = names[author]
    let page = HTML.page(of: uri)
    guard let post = posts[uri] else {
      let isAccount = uri == "at://\(author)"
      let shown = name.map { isAccount ? $0 : "a record of \($0)" }
      return HTML.link(to: page, shown ?? text ?? uri)
    }
    let seen = post.seen.prefix(10)
    return """
      \(HTML.link(to: page, "a post of \(name ?? author)"))<span class="others" dir="auto">\
      \(post.text)</span> <span class="soft">(another\u{2019}s words, as seen on \(seen))</span>
      """
  }
}
