internal import ATProtocol
internal import Files
internal import IPLD

/// The frame of every page.
extension HTML {
  /// Begins a page.
  ///
  /// - Parameters:
  ///   - title: what stands at its top.
  ///   - account: what people call the account.
  ///   - links: the links to other pages: the files, and their names.
  static func page(
    _ title: String, of account: String, links: [(file: String, name: String)]
  ) -> HTML {
    var html: HTML = """
      <!doctype html>
      <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src 'self' file:; media-src 'self' file:; style-src 'self' file:">
      <meta name="referrer" content="no-referrer"><link rel="stylesheet" href="style.css"><title>\
      \(title) · \(account)</title></head><body>

      """
    if links.isEmpty { return html }
    html += "<nav>"
    for link in links { html += #"<a href="\#(link.file)">\#(link.name)</a>"# }
    html += "</nav>\n"
    return html
  }

  /// What ends a page.
  static let endOfPage: HTML = "</body></html>\n"

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

  /// The name of a collection for people; its NSID if it is not known.
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
  static func name(of time: Moment) -> String {
    let day = time.day
    return
      "\(Int(day.suffix(2)) ?? 0) \(name(ofMonth: String(day.prefix(7)))), \(time.minute.suffix(5)) UTC"
  }

  /// The file of the style sheet.
  static let styleName = "style.css"
  /// The one style sheet of the pages.
  static let style = """
    :root { color-scheme: light dark; --line: #8884; --soft: #8888; --accent: light-dark(#1a5fb4, #8ab8f0); }
    body { max-width: 40rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; font: 1rem/1.55 system-ui, sans-serif;
      background: light-dark(#fff, #15171a); color: light-dark(#1a1c1e, #e4e6e8); overflow-wrap: break-word; }
    a { color: var(--accent); }
    header { margin-bottom: 2rem; }
    nav { margin: 1rem 0; }
    nav a + a { margin-left: 1rem; }
    h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0; }
    h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
    .banner { width: 100%; height: auto; max-height: 14rem; object-fit: cover; border-radius: .75rem; }
    .avatar { width: 5rem; height: 5rem; object-fit: cover; border-radius: 50%; }
    .soft, time, figcaption { color: light-dark(#5c6368, #9aa2a9); font-size: .875rem; }
    .text { white-space: pre-wrap; margin: .4rem 0; }
    article { padding: 1rem 0; border-top: 1px solid var(--line); }
    article:target { background: light-dark(#fff7df, #2a2617); outline: .5rem solid light-dark(#fff7df, #2a2617); }
    figure { margin: .75rem 0; }
    figure img, figure video { max-width: 100%; height: auto; border-radius: .5rem; background: var(--line); }
    .lost, .card, blockquote { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; margin: .75rem 0; }
    .lost { border-style: dashed; }
    .card img { max-width: 100%; height: auto; }
    details > summary { cursor: pointer; }
    pre { overflow-x: auto; font-size: .8125rem; white-space: pre-wrap; }
    ul.months { list-style: none; padding: 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .25rem 1rem; }
    """
}
