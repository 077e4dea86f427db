internal import ATProtocol
internal import Archive
package import Files
internal import IPLD
internal import Repository
package import Snapshots
package import SystemPackage

/// Writes a snapshot as plain pages that need no script: the posts by month with their media beside
/// them, and a page of every other collection by year.
///
/// ```
/// OUT/index.html                    the profile, and what there is
/// OUT/2025-03.html                  the posts of a month
/// OUT/app.bsky.feed.like-2025.html  the records of another collection, of a year
/// OUT/media/{cid}.jpg               what the posts show
/// OUT/style.css
/// ```
package struct PageExporter {
  /// The result.
  package struct Report: Sendable {
    /// How many pages there are.
    package var pages = 0
    /// How many posts are on them.
    package var posts = 0
    /// How many other records are on them.
    package var others = 0
    /// How many media files were written.
    package var media = 0
    /// How many media files that posts show are not in the archive.
    package var missingMedia = 0
    /// How many records are not in the archive, or cannot be read.
    package var missingRecords = 0
    /// How many parts of the tree of records were not in the CAR that came in.
    package var missingNodes = 0
    /// What is damaged; empty if nothing is.
    package var flaws: [String] = []

    /// Whether nothing is missing.
    package var isComplete: Bool {
      flaws.isEmpty && missingMedia + missingRecords + missingNodes == 0
    }
  }

  private typealias Entry = RecordWriter.Entry
  /// The name of a page or of a part of a page's title, and how many records are on it.
  private typealias Part = (name: String, count: Int)

  /// How much of a page is collected before it is written.
  private static let piece = 1 << 18
  private static let posts = "app.bsky.feed.post"
  private static let profile = "app.bsky.actor.profile"

  private let blocks: SnapshotBlocks
  private let folder: FilePath
  private let replacing: Bool
  private let observer: Progress.Observer
  /// The account's name for people.
  private let account: String
  private var writer: RecordWriter
  private var report = Report()
  private var profile: IPLDValue?

  /// Writes the pages of a snapshot.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - folder: where; it is created if it does not exist.
  ///   - replacing: whether existing files are replaced.
  /// - Throws: ``BackupError`` if a file is there, or cannot be written; what reading the archive
  ///   throws.
  package static func export(
    _ archived: ArchivedSnapshot, to folder: FilePath, replacing: Bool,
    observer: @escaping Progress.Observer
  ) throws -> Report {
    try BlobFolder.make(folder.string)
    let media = try PageMedia(of: archived, in: folder, replacing: replacing)
    var exporter = PageExporter(
      blocks: SnapshotBlocks(archived, keepsRecords: true), folder: folder, replacing: replacing,
      observer: observer, account: archived.snapshot.name,
      writer: RecordWriter(did: archived.snapshot.did, media: media))
    do {
      exporter.writer.others = try OthersOnPages(of: archived)
    } catch let error where error.isLoss {
      exporter.report.flaws.append("what others said: \(error)")
    }
    try exporter.run()
    return exporter.report
  }

  private mutating func run() throws {
    let snapshot = blocks.archived.snapshot
    // Without its commit there is nothing to show.
    _ = try blocks.archived.block(snapshot.commit)
    let times = RecordTimes(of: snapshot)
    var collections: [(name: String, parts: [Part])] = []
    var (collection, entries): (String?, [Entry]) = (nil, [])
    func finishCollection(_ exporter: inout PageExporter) throws {
      guard let collection else { return }
      collections.append((collection, try exporter.writePages(entries, of: collection)))
    }
    // All records of a collection follow one another.
    let contents = try blocks.contents { record, body in
      let (part, rest) = FileNaming.parts(of: record.key)
      let name = String(decoding: part ?? rest, as: UTF8.self)
      let key = part == nil ? "" : String(decoding: rest, as: UTF8.self)
      if name != collection {
        try finishCollection(&self)
        (collection, entries) = (name, [])
      }
      let value = Self.value(body)
      if key == "self", name == Self.profile { profile = value }
      let time = times.time(of: record.key, createdAt: value?["createdAt"]?.string)
      entries.append((key, record.cid, time))
    }
    try finishCollection(&self)
    try writeIndex(collections)
    if contents.flaw == nil { report.missingNodes = contents.tree.missingNodes.count }
    let media = writer.media
    (report.media, report.missingMedia) = (media.count, media.missingCount)
    report.flaws += [contents.flaw].compactMap(\.self) + media.damaged
  }

  /// A record's value; nil if it is missing or cannot be read.
  private static func value(_ block: Span<UInt8>) -> IPLDValue? {
    try? DAGCBORDecoder.decode(block)
  }

  /// Counts a page that is going to be written; the style sheet comes before the first.
  private mutating func countPage() throws {
    report.pages += 1
    guard report.pages == 1 else { return }
    try AtomicFile.save(to: folder.appending(HTML.styleName), replacing: replacing) {
      let style = Array(HTML.style.utf8)
      try $0(style.span)
    }
  }

  /// Divides entries in the order of time where the beginnings of their days differ; those without
  /// a date come last.
  private static func divide(_ entries: [Entry], _ length: Int) -> [(String, ArraySlice<Entry>)] {
    let sorted = entries.enumerated().sorted {
      ($0.element.time?.seconds ?? .max, $0.offset) < ($1.element.time?.seconds ?? .max, $1.offset)
    }.map(\.element)
    var parts: [(name: String, entries: ArraySlice<Entry>)] = []
    for (index, entry) in sorted.enumerated() {
      let name = entry.time.map { String($0.day.prefix(length)) } ?? "undated"
      let start = parts.last?.name == name ? parts.removeLast().entries.startIndex : index
      parts.append((name, sorted[start...index]))
    }
    return parts
  }

  /// The file of a page.
  private static func file(_ collection: String, _ part: String) -> String {
    collection == posts
      ? "\(part).html"
      : FileNaming.component(Array(collection.utf8)[...], ending: "-\(part).html", for: .any)
  }

  /// Writes the pages of a collection: of posts by month, of others by year.
  private mutating func writePages(_ entries: [Entry], of collection: String) throws -> [Part] {
    let isPosts = collection == Self.posts
    let parts = Self.divide(entries, isPosts ? 7 : 4)
    let files = parts.map { Self.file(collection, $0.0) }
    if isPosts {
      for ((_, entries), file) in zip(parts, files) {
        for entry in entries { writer.pages[entry.key] = file }
      }
    }
    for (index, (part, entries)) in parts.enumerated() {
      var links = [(file: "index.html", name: "Contents")]
      if isPosts, index > 0 { links.append((files[index - 1], "Earlier")) }
      if isPosts, index + 1 < parts.count { links.append((files[index + 1], "Later")) }
      let title =
        isPosts
        ? HTML.name(ofMonth: part) : "\(HTML.name(ofCollection: collection)), \(part)"
      try countPage()
      try AtomicFile.save(to: folder.appending(files[index]), replacing: replacing) { sink in
        var html: HTML = "\(HTML.page(title, of: account, links: links))<h1>\(title)</h1>"
        for entry in entries {
          html += try write(entry, isPost: isPosts)
          if html.bytes.count >= Self.piece { try html.move(to: sink) }
        }
        html += HTML.endOfPage
        try html.move(to: sink)
      }
    }
    return parts.map { ($0.0, $0.1.count) }
  }

  private mutating func write(_ entry: Entry, isPost: Bool) throws -> HTML {
    let found = try blocks.allLaidOut()
    let number = found.number(of: entry.cid)
    let value = number.flatMap { found.withBody($0) { Self.value($0) } }
    if value == nil { report.missingRecords += 1 }
    if isPost { report.posts += 1 } else { report.others += 1 }
    let done = UInt64(report.posts + report.others)
    if done % 64 == 0 {
      let total = UInt64(clamping: blocks.archived.snapshot.counts.records)
      observer(Progress(stage: "pages", done: done, total: total))
    }
    return isPost ? try writer.post(entry, value) : writer.record(entry, value)
  }

  private mutating func writeIndex(_ collections: [(name: String, parts: [Part])]) throws {
    let snapshot = blocks.archived.snapshot
    var html = HTML.page("Contents", of: account, links: [])
    html += "<header>"
    for name in ["banner", "avatar"] {
      guard let file = try writer.media.file(profile?[name], ["image/"])?.path else { continue }
      html += #"<img class="\#(name)" src="\#(file)" alt="">"#
    }
    html += """
      <h1 dir="auto">\(profile?.text("displayName") ?? account)</h1>\
      <p class="soft">\(account) · \(snapshot.did)</p>
      """
    if let about = profile?.text("description") {
      html += #"<div class="text" dir="auto">\#(about)</div>"#
    }
    let moment = Moment(snapshot.createdAt).map(HTML.name) ?? snapshot.createdAt
    html += "<p class=\"soft\">As it was backed up on \(moment).</p></header>\n"
    func list(_ parts: some Sequence<Part>, of collection: String) {
      html += #"<ul class="months">"#
      for (part, count) in parts {
        let name = collection == Self.posts ? HTML.name(ofMonth: part) : part
        html += """
          <li><a href="\(Self.file(collection, part))">\(name)</a>\
          <span class="soft"> \(count)</span></li>
          """
      }
      html += "</ul>"
    }
    var months = collections.first { $0.name == Self.posts }?.parts[...] ?? []
    while let first = months.first?.name {
      html += "<h2>\(first == "undated" ? "Without a date" : String(first.prefix(4)))</h2>"
      let year = months.prefix { $0.name.prefix(4) == first.prefix(4) }
      list(year, of: Self.posts)
      months = months[year.endIndex...]
      if months.isEmpty { html += "\n" }
    }
    for (collection, years) in collections where collection != Self.posts {
      let name = HTML.name(ofCollection: collection)
      html += #"<h2 title="\#(collection)">\#(name)</h2>"#
      list(years, of: collection)
      html += "\n"
    }
    html += HTML.endOfPage
    try countPage()
    try AtomicFile.save(to: folder.appending("index.html"), replacing: replacing) {
      try html.move(to: $0)
    }
  }
}
