internal import ATProtocol
internal import Files
internal import IPLD

/// The frame of every page.
struct PageLayout {
  /// What people call the account.
  let account: String

  /// Begins a page.
  ///
  /// - Parameters:
  ///   - title: what stands at its top.
  ///   - links: where one can go from here: the files, and their names.
  func begin(_ title: String, links: [(file: String, name: String)]) -> HTMLText {
    var html = HTMLText()
    html.markup(
      """
      <!doctype html>
      <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src 'self' file:; media-src 'self' file:; style-src 'self' file:">
      <meta name="referrer" content="no-referrer"><link rel="stylesheet" href="style.css"><title>
      """)
    html.text("\(title) · \(account)")
    html.markup("</title></head><body>\n")
    if !links.isEmpty {
      html.markup("<nav>")
      for link in links { html.element("a", ["href": link.file], link.name) }
      html.markup("</nav>\n")
    }
    return html
  }

  /// What ends a page.
  static let ending: StaticString = "</body></html>\n"

  private static let months = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
  ]

  private static let collections = [
    "app.bsky.feed.like": "Likes", "app.bsky.feed.repost": "Reposts",
    "app.bsky.graph.follow": "Follows", "app.bsky.graph.block": "Blocks",
    "app.bsky.graph.list": "Lists", "app.bsky.graph.listitem": "Members of lists",
    "app.bsky.graph.listblock": "Blocked lists", "app.bsky.graph.starterpack": "Starter packs",
    "app.bsky.feed.generator": "Feeds", "app.bsky.feed.threadgate": "Who may reply",
    "app.bsky.feed.postgate": "Who may quote", "app.bsky.actor.profile": "Profile",
    "chat.bsky.actor.declaration": "Chat settings",
  ]

  /// What people call the records of a collection; its own name for one that is not known.
  static func name(ofCollection collection: String) -> String {
    collections[collection] ?? collection
  }

  /// A month, `2025-03`, as people write it.
  static func name(ofMonth month: String) -> String {
    guard let number = Int(month.suffix(2)), months.indices.contains(number - 1) else {
      return "Without a date"
    }
    return "\(months[number - 1]) \(month.prefix(4))"
  }

  /// A moment as people write it, in UTC.
  static func name(of time: FileTime) -> String {
    let day = time.day
    return
      "\(Int(day.suffix(2)) ?? 0) \(name(ofMonth: String(day.prefix(7)))), \(time.minute.suffix(5)) UTC"
  }
}
