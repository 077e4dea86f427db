internal import ATProtocol
internal import Files
internal import IPLD

/// Writes posts as they are read: text with its links, pictures with what is said of them, videos,
/// cards, quotes.
struct PostWriter {
  /// A record as the pages are laid out by it: these are all that grows in memory.
  struct Entry {
    let key: String
    let cid: CID
    let time: FileTime?
  }

  let did: DID
  /// The page on which a post of the account stands; nil if it is on none.
  let page: (_ key: String) -> String?

  /// Appends a post.
  ///
  /// - Parameter value: what it says; nil if it is not in the archive, or cannot be read.
  /// - Throws: ``BackupError`` if a file cannot be written.
  func write(
    _ post: Entry, _ value: IPLDValue?, _ media: inout PageMedia, to html: inout HTMLText
  ) throws {
    html.open("article", ["id": post.key])
    if let value {
      replyLine(value, to: &html)
      html.open("div", ["class": "text", "dir": "auto", "lang": HTMLText.language(value["langs"])])
      text(of: value, to: &html)
      html.close("div")
      try embed(value, &media, to: &html)
      tags(value, to: &html)
    } else {
      html.element("p", ["class": "lost"], "This post is not in the archive, or cannot be read.")
    }
    html.markup("<details class=\"soft\"><summary>")
    if let time = post.time {
      html.element("time", ["datetime": time.text], PageLayout.name(of: time))
    } else {
      html.markup("Address")
    }
    html.markup("</summary>")
    html.element(
      "a", ["href": "#\(post.key)"], "at://\(did)/app.bsky.feed.post/\(post.key)")
    html.markup("<br>")
    html.text("\(post.cid)")
    html.markup("</details></article>\n")
  }

  private func replyLine(_ value: IPLDValue, to html: inout HTMLText) {
    guard let parent = value["reply"]?["parent"]?["uri"]?.string else { return }
    html.markup("<p class=\"soft\">↳ in reply to ")
    reference(parent, to: &html)
    html.markup("</p>")
  }

  /// A link to a record: on these pages, or on the web.
  private func reference(_ uri: String, to html: inout HTMLText) {
    let own = "at://\(did)/app.bsky.feed.post/"
    if uri.hasPrefix(own), let page = page(String(uri.dropFirst(own.count))) {
      html.element("a", ["href": "\(page)#\(uri.dropFirst(own.count))"], "an earlier post")
    } else {
      html.link(to: HTMLText.page(of: uri), uri)
    }
  }

  // MARK: Text

  /// The text, its facets as links; those that overlap or do not lie on characters are left out.
  private func text(of value: IPLDValue, to html: inout HTMLText) {
    guard let text = value["text"]?.string else { return }
    let bytes = Array(text.utf8)
    var done = 0
    let facets = (value["facets"]?.array ?? []).compactMap { facet -> (Range<Int>, IPLDValue)? in
      guard let start = facet["index"]?["byteStart"]?.integer,
        let end = facet["index"]?["byteEnd"]?.integer, 0 <= start, start < end, end <= bytes.count,
        Self.isBoundary(start, bytes), Self.isBoundary(end, bytes)
      else { return nil }
      return (start..<end, facet)
    }
    for (range, facet) in facets.sorted(by: { $0.0.lowerBound < $1.0.lowerBound })
    where range.lowerBound >= done {
      html.text(String(decoding: bytes[done..<range.lowerBound], as: UTF8.self))
      let shown = String(decoding: bytes[range], as: UTF8.self)
      html.link(to: target(of: facet), shown)
      done = range.upperBound
    }
    html.text(String(decoding: bytes[done...], as: UTF8.self))
  }

  private func target(of facet: IPLDValue) -> String? {
    for feature in facet["features"]?.array ?? [] {
      if let uri = feature["uri"]?.string { return uri }
      if let did = feature["did"]?.string { return HTMLText.page(of: "at://\(did)") }
    }
    return nil
  }

  private static func isBoundary(_ place: Int, _ bytes: [UInt8]) -> Bool {
    place == bytes.count || bytes[place] & 0xc0 != 0x80
  }

  private func tags(_ value: IPLDValue, to html: inout HTMLText) {
    let tags = (value["tags"]?.array ?? []).compactMap(\.string)
    guard !tags.isEmpty else { return }
    html.element("p", ["class": "soft"], tags.map { "#\($0)" }.joined(separator: " "))
  }

  // MARK: What is embedded

  private func embed(_ value: IPLDValue, _ media: inout PageMedia, to html: inout HTMLText) throws {
    guard let embed = value["embed"] else { return }
    let labels = (value["labels"]?["values"]?.array ?? []).compactMap { $0["val"]?.string }
    if !labels.isEmpty {
      html.markup("<details><summary>Content warning: ")
      html.text(labels.joined(separator: ", "))
      html.markup("</summary>")
    }
    let shown = embed["media"] ?? embed
    for image in shown["images"]?.array ?? [] { try picture(image, &media, to: &html) }
    if shown["video"] != nil { try video(shown, &media, to: &html) }
    if let card = shown["external"] { try self.card(card, &media, to: &html) }
    if let quoted = (embed["record"]?["record"] ?? embed["record"])?["uri"]?.string {
      html.markup("<blockquote>Quotes ")
      reference(quoted, to: &html)
      html.markup("</blockquote>")
    }
    if !labels.isEmpty { html.close("details") }
  }

  /// Width and height that a record names, for the space that a picture takes.
  private static func size(_ value: IPLDValue?) -> (width: String?, height: String?) {
    guard let width = value?["width"]?.integer, let height = value?["height"]?.integer,
      1...100_000 ~= width, 1...100_000 ~= height
    else { return (nil, nil) }
    return ("\(width)", "\(height)")
  }

  private func picture(
    _ image: IPLDValue, _ media: inout PageMedia, to html: inout HTMLText
  ) throws {
    let alt = image["alt"]?.string ?? ""
    guard let found = try media.file(image["image"], "image/") else { return }
    guard let file = found.path else { return lost("This picture", found.why, alt, to: &html) }
    let size = Self.size(image["aspectRatio"])
    html.markup("<figure>")
    // What may hold a script is a picture here, and nothing that can be opened.
    let isOpened = !file.hasSuffix(".svg") && !file.hasSuffix(".bin")
    if isOpened { html.open("a", ["href": file]) }
    html.open(
      "img",
      [
        "src": file, "alt": alt, "width": size.width, "height": size.height, "loading": "lazy",
      ])
    if isOpened { html.close("a") }
    if !alt.isEmpty { html.element("figcaption", ["dir": "auto"], alt) }
    html.close("figure")
  }

  private func video(
    _ embed: IPLDValue, _ media: inout PageMedia, to html: inout HTMLText
  ) throws {
    let alt = embed["alt"]?.string ?? ""
    guard let found = try media.file(embed["video"], "video/", "image/gif") else { return }
    guard let file = found.path else { return lost("This video", found.why, alt, to: &html) }
    let size = Self.size(embed["aspectRatio"])
    html.markup("<figure>")
    html.open(
      "video",
      [
        "src": file, "controls": "", "preload": "metadata", "aria-label": alt, "width": size.width,
        "height": size.height,
      ])
    for caption in embed["captions"]?.array ?? [] {
      guard let track = try media.file(caption["file"], "text/vtt")?.path else { continue }
      let language = caption["lang"]?.string ?? ""
      html.open(
        "track", ["src": track, "srclang": language, "label": language, "kind": "captions"])
    }
    html.close("video")
    html.markup("<figcaption dir=\"auto\">")
    html.text(alt.isEmpty ? "" : "\(alt) · ")
    html.element("a", ["href": file, "download": ""], "the video as a file")
    html.markup("</figcaption></figure>")
  }

  private func card(_ card: IPLDValue, _ media: inout PageMedia, to html: inout HTMLText) throws {
    html.markup("<div class=\"card\" dir=\"auto\">")
    if let file = try media.file(card["thumb"], "image/")?.path {
      html.open("img", ["src": file, "alt": "", "loading": "lazy"])
      html.markup("<br>")
    }
    let uri = card["uri"]?.string
    let title = card["title"]?.string ?? ""
    html.link(to: uri, title.isEmpty ? uri ?? "" : title)
    if let about = card["description"]?.string, !about.isEmpty {
      html.element("p", ["class": "soft"], about)
    }
    html.close("div")
  }

  private func lost(
    _ what: String, _ reason: String, _ alt: String, to html: inout HTMLText
  ) {
    html.open("p", ["class": "lost", "dir": "auto"])
    html.text("\(what) is missing: \(reason).")
    if !alt.isEmpty { html.text(" It was described so: \(alt)") }
    html.close("p")
  }
}
