internal import ATProtocol
internal import Files
internal import IPLD

/// Writes records as they are read: posts as text with its links, pictures with what is said of
/// them, videos, cards, quotes; others by what they are about and what they hold.
struct RecordWriter {
  /// A record as the pages are laid out by it: these are all that grows in memory.
  typealias Entry = (key: String, cid: CID, time: FileTime?)

  let did: DID
  /// The media files that have been written so far.
  var media: PageMedia
  /// The pages on which the account's posts stand, by their keys.
  var pages: [String: String] = [:]
  /// The page that is being written.
  var html = HTMLText()

  // MARK: Posts

  /// Appends a post.
  ///
  /// - Parameter value: what it says; nil if it is not in the archive, or cannot be read.
  /// - Throws: ``BackupError`` if a file cannot be written.
  mutating func write(post: Entry, _ value: IPLDValue?) throws {
    html.open("article", ["id": post.key])
    if let value {
      if let parent = value["reply"]?["parent"]?["uri"]?.string {
        html.markup("<p class=\"soft\">↳ in reply to ")
        reference(parent)
        html.markup("</p>")
      }
      html.open("div", ["class": "text", "dir": "auto", "lang": HTMLText.language(value["langs"])])
      text(of: value)
      html.close("div")
      try embed(value)
      let tags = value.texts("tags")
      if !tags.isEmpty {
        html.element("p", ["class": "soft"], tags.map { "#\($0)" }.joined(separator: " "))
      }
    } else {
      html.element("p", ["class": "lost"], "This post is not in the archive, or cannot be read.")
    }
    html.markup("<details class=\"soft\"><summary>")
    if !time(of: post) { html.markup("Address") }
    html.markup("</summary>")
    html.element(
      "a", ["href": "#\(post.key)"], "at://\(did)/app.bsky.feed.post/\(post.key)")
    html.markup("<br>")
    html.text("\(post.cid)")
    html.markup("</details></article>\n")
  }

  /// Appends the time of a record; false if it has none.
  private mutating func time(of record: Entry) -> Bool {
    guard let time = record.time else { return false }
    html.element("time", ["datetime": time.text], PageLayout.name(of: time))
    return true
  }

  /// Appends a link to a record: on these pages, or on the web.
  private mutating func reference(_ uri: String) {
    let own = "at://\(did)/app.bsky.feed.post/"
    if uri.hasPrefix(own), let page = pages[String(uri.dropFirst(own.count))] {
      html.element("a", ["href": "\(page)#\(uri.dropFirst(own.count))"], "an earlier post")
    } else {
      html.link(to: HTMLText.page(of: uri), uri)
    }
  }

  /// Appends the text, its facets as links; those that overlap or do not lie on characters are left
  /// out.
  private mutating func text(of value: IPLDValue) {
    guard let text = value["text"]?.string else { return }
    let bytes = Array(text.utf8)
    func isBoundary(_ place: Int) -> Bool { place == bytes.count || bytes[place] & 0xc0 != 0x80 }
    func part(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
    let facets = (value["facets"]?.array ?? []).compactMap { facet -> (Range<Int>, IPLDValue)? in
      guard let start = facet["index"]?["byteStart"]?.integer,
        let end = facet["index"]?["byteEnd"]?.integer, 0 <= start, start < end, end <= bytes.count,
        isBoundary(start), isBoundary(end)
      else { return nil }
      return (start..<end, facet)
    }
    var done = 0
    for (range, facet) in facets.sorted(by: { $0.0.lowerBound < $1.0.lowerBound })
    where range.lowerBound >= done {
      html.text(part(done..<range.lowerBound))
      html.link(to: Self.target(of: facet), part(range))
      done = range.upperBound
    }
    html.text(part(done..<bytes.count))
  }

  private static func target(of facet: IPLDValue) -> String? {
    for feature in facet["features"]?.array ?? [] {
      if let uri = feature["uri"]?.string { return uri }
      if let did = feature["did"]?.string { return HTMLText.page(of: "at://\(did)") }
    }
    return nil
  }

  // MARK: What is embedded

  private mutating func embed(_ value: IPLDValue) throws {
    guard let shown = value.shownMedia else { return }
    let labels = value.labels
    if !labels.isEmpty {
      html.markup("<details><summary>Content warning: ")
      html.text(labels.joined(separator: ", "))
      html.markup("</summary>")
    }
    for image in shown["images"]?.array ?? [] { try picture(image) }
    if shown["video"] != nil { try video(shown) }
    if let card = shown["external"] { try self.card(card) }
    if let quoted = value.quotedURI {
      html.markup("<blockquote>Quotes ")
      reference(quoted)
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

  /// The file of a picture or video, and what is said of it; if there is none, appends why.
  private mutating func file(
    _ blob: IPLDValue?, _ kinds: [String], of value: IPLDValue, _ name: String
  ) throws -> (path: String, alt: String)? {
    let alt = value["alt"]?.string ?? ""
    guard let found = try media.file(blob, kinds) else { return nil }
    if let path = found.path { return (path, alt) }
    html.open("p", ["class": "lost", "dir": "auto"])
    html.text("\(name) is missing: \(found.why).")
    if !alt.isEmpty { html.text(" It was described so: \(alt)") }
    html.close("p")
    return nil
  }

  private mutating func picture(_ image: IPLDValue) throws {
    guard let (file, alt) = try file(image["image"], ["image/"], of: image, "This picture") else {
      return
    }
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

  private mutating func video(_ embed: IPLDValue) throws {
    guard
      let (file, alt) = try file(embed["video"], ["video/", "image/gif"], of: embed, "This video")
    else { return }
    let size = Self.size(embed["aspectRatio"])
    html.markup("<figure>")
    html.open(
      "video",
      [
        "src": file, "controls": "", "preload": "metadata", "aria-label": alt, "width": size.width,
        "height": size.height,
      ])
    for caption in embed["captions"]?.array ?? [] {
      guard let track = try media.file(caption["file"], ["text/vtt"])?.path else { continue }
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

  private mutating func card(_ card: IPLDValue) throws {
    html.markup("<div class=\"card\" dir=\"auto\">")
    if let file = try media.file(card["thumb"], ["image/"])?.path {
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

  // MARK: Other records

  /// Appends a record that is no post.
  ///
  /// - Parameter value: what it says; nil if it is not in the archive, or cannot be read.
  mutating func write(record: Entry, _ value: IPLDValue?) {
    html.open("article", ["id": record.key])
    _ = time(of: record)
    guard let value else {
      html.element(
        "p", ["class": "lost"], "\(record.key) is not in the archive, or cannot be read.")
      html.markup("</article>\n")
      return
    }
    html.markup("<p dir=\"auto\">")
    if let subject = value["subject"]?["uri"]?.string ?? value["subject"]?.string {
      let uri = subject.hasPrefix("did:") ? "at://\(subject)" : subject
      html.link(to: HTMLText.page(of: uri), subject)
    }
    for field in ["displayName", "name", "title", "text", "description"] {
      guard let text = value[field]?.string, !text.isEmpty else { continue }
      html.text("\(text) ")
    }
    html.markup("</p><details><summary class=\"soft\">")
    html.text(record.key)
    html.markup("</summary>")
    html.element("pre", [:], value.json(pretty: true))
    html.markup("</details></article>\n")
  }
}
