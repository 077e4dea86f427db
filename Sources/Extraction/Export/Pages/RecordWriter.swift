internal import ATProtocol
internal import Files
internal import IPLD

/// Writes records as they are read: posts as text with links, pictures with their descriptions,
/// videos, cards, quotes; other records by their subject and content.
struct RecordWriter {
  /// What the layout of the pages needs of a record: only these grow in memory.
  typealias Entry = (key: String, cid: CID, time: Moment?)

  let did: DID
  /// The media files that have been written so far.
  var media: PageMedia
  /// What app views have shown of others.
  var others = OthersOnPages()
  /// The pages on which the account's posts stand, by their keys.
  var pages: [String: String] = [:]

  // MARK: Posts

  /// A post.
  ///
  /// - Parameter value: what it says; nil if it is not in the archive, or cannot be read.
  /// - Throws: ``BackupError`` if a file cannot be written.
  mutating func post(_ post: Entry, _ value: IPLDValue?) throws -> HTML {
    var html: HTML = #"<article id="\#(post.key)">"#
    if let value {
      if let parent = value["reply"]?["parent"]?["uri"]?.string {
        html += #"<p class="soft">↳ in reply to \#(reference(parent))</p>"#
      }
      html += """
        <div class="text" dir="auto"\(HTML.language(value["langs"]))>\
        \(Self.text(of: value))</div>\(try embed(value))
        """
      let tags = value.texts("tags").map { "#\($0)" }.joined(separator: " ")
      if !tags.isEmpty { html += #"<p class="soft">\#(tags)</p>"# }
    } else {
      html += #"<p class="lost">This post is not in the archive, or cannot be read.</p>"#
    }
    html += """
      <details class="soft"><summary>\(Self.time(of: post) ?? "Address")</summary>\
      <a href="#\(post.key)">at://\(did)/app.bsky.feed.post/\(post.key)</a><br>\(post.cid)\
      </details></article>

      """
    return html
  }

  /// The time of a record; nil if it has none.
  private static func time(of record: Entry) -> HTML? {
    record.time.map { #"<time datetime="\#($0.text)">\#(HTML.name(of: $0))</time>"# }
  }

  /// A link to a record: on these pages, or on the web.
  private func reference(_ uri: String) -> HTML {
    let own = "at://\(did)/app.bsky.feed.post/"
    guard uri.hasPrefix(own), let page = pages[String(uri.dropFirst(own.count))] else {
      return others.reference(to: uri)
    }
    return "<a href=\"\(page)#\(uri.dropFirst(own.count))\">an earlier post</a>"
  }

  /// The text, its facets as links; those that overlap or do not lie on characters are left out.
  private static func text(of value: IPLDValue) -> HTML {
    guard let text = value["text"]?.string else { return "" }
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
    var (html, done): (HTML, Int) = ("", 0)
    for (range, facet) in facets.sorted(by: { $0.0.lowerBound < $1.0.lowerBound })
    where range.lowerBound >= done {
      html += "\(part(done..<range.lowerBound))\(HTML.link(to: target(of: facet), part(range)))"
      done = range.upperBound
    }
    html += "\(part(done..<bytes.count))"
    return html
  }

  private static func target(of facet: IPLDValue) -> String? {
    for feature in facet["features"]?.array ?? [] {
      if let uri = feature["uri"]?.string { return uri }
      if let did = feature["did"]?.string { return HTML.page(of: "at://\(did)") }
    }
    return nil
  }

  // MARK: What is embedded

  private mutating func embed(_ value: IPLDValue) throws -> HTML {
    guard let shown = value.shownMedia else { return "" }
    var html: HTML = ""
    for image in shown["images"]?.array ?? [] { html += try picture(image) }
    if shown["video"] != nil { html += try video(shown) }
    if let card = shown["external"] { html += try self.card(card) }
    if let quoted = value.quotedURI {
      html += "<blockquote>Quotes \(reference(quoted))</blockquote>"
    }
    let labels = value.labels.joined(separator: ", ")
    if value.labels.isEmpty { return html }
    return "<details><summary>Content warning: \(labels)</summary>\(html)</details>"
  }

  /// Width and height that a record names, for the space that a picture takes.
  private static func size(_ value: IPLDValue?) -> HTML {
    guard let width = value?["width"]?.integer, let height = value?["height"]?.integer,
      1...100_000 ~= width, 1...100_000 ~= height
    else { return "" }
    return #" width="\#(width)" height="\#(height)""#
  }

  /// What is shown instead of a picture or video.
  private static func lost(_ what: HTML, _ why: String, _ alt: String) -> HTML {
    let description: HTML = alt.isEmpty ? "" : " Its description: \(alt)"
    return #"<p class="lost" dir="auto">\#(what) is missing: \#(why).\#(description)</p>"#
  }

  private mutating func picture(_ image: IPLDValue) throws -> HTML {
    let alt = image["alt"]?.string ?? ""
    guard let found = try media.file(image["image"], ["image/"]) else { return "" }
    guard let file = found.path else { return Self.lost("This picture", found.why, alt) }
    let size = Self.size(image["aspectRatio"])
    let picture: HTML = #"<img src="\#(file)" alt="\#(alt)"\#(size) loading="lazy">"#
    // A file that may hold a script is shown as a picture, and cannot be opened.
    let isOpened = !file.hasSuffix(".svg") && !file.hasSuffix(".bin")
    let caption: HTML = alt.isEmpty ? "" : #"<figcaption dir="auto">\#(alt)</figcaption>"#
    return
      "<figure>\(isOpened ? #"<a href="\#(file)">\#(picture)</a>"# : picture)\(caption)</figure>"
  }

  private mutating func video(_ embed: IPLDValue) throws -> HTML {
    let alt = embed["alt"]?.string ?? ""
    guard let found = try media.file(embed["video"], ["video/", "image/gif"]) else { return "" }
    guard let file = found.path else { return Self.lost("This video", found.why, alt) }
    var tracks: HTML = ""
    for caption in embed["captions"]?.array ?? [] {
      guard let track = try media.file(caption["file"], ["text/vtt"])?.path else { continue }
      let language = caption["lang"]?.string ?? ""
      tracks +=
        #"<track src="\#(track)" srclang="\#(language)" label="\#(language)" kind="captions">"#
    }
    return """
      <figure><video src="\(file)" controls="" preload="metadata" aria-label="\(alt)"\
      \(Self.size(embed["aspectRatio"]))>\(tracks)</video>\
      <figcaption dir="auto">\(alt.isEmpty ? "" : "\(alt) · ")\
      <a href="\(file)" download="">the video as a file</a></figcaption></figure>
      """
  }

  private mutating func card(_ card: IPLDValue) throws -> HTML {
    var html: HTML = #"<div class="card" dir="auto">"#
    if let file = try media.file(card["thumb"], ["image/"])?.path {
      html += #"<img src="\#(file)" alt="" loading="lazy"><br>"#
    }
    let uri = card["uri"]?.string
    html += HTML.link(to: uri, card.text("title") ?? uri ?? "")
    if let about = card.text("description") {
      html += #"<p class="soft">\#(about)</p>"#
    }
    html += "</div>"
    return html
  }

  // MARK: Other records

  /// A record that is not a post.
  ///
  /// - Parameter value: what it says; nil if it is not in the archive, or cannot be read.
  func record(_ record: Entry, _ value: IPLDValue?) -> HTML {
    let beginning: HTML = #"<article id="\#(record.key)">\#(Self.time(of: record) ?? "")"#
    guard let value else {
      return """
        \(beginning)<p class="lost">\(record.key) is not in the archive, or cannot be read.</p>\
        </article>

        """
    }
    var about: HTML = ""
    if let subject = value["subject"]?["uri"]?.string ?? value["subject"]?.string {
      let uri = subject.hasPrefix("did:") ? "at://\(subject)" : subject
      about = others.reference(to: uri, called: subject)
    }
    for field in ["displayName", "name", "title", "text", "description"] {
      if let text = value.text(field) { about += "\(text) " }
    }
    return """
      \(beginning)<p dir="auto">\(about)</p><details><summary class="soft">\(record.key)</summary>\
      <pre>\(value.json(pretty: true))</pre></details></article>

      """
  }
}
