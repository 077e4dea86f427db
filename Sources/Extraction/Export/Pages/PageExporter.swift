internal import ATProtocol
internal import Archive
package import Files
internal import IPLD
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
  /// What came of it.
  package struct Report: Sendable {
    /// How many pages there are.
    package var pages = 0
    /// How many posts are on them.
    package var posts = 0
    /// How many other records are on them.
    package var others = 0
    /// How many media files were written.
    package var media = 0
    /// How many of those that posts show are not in the archive.
    package var missingMedia = 0
    /// How many records are not in the archive, or cannot be read.
    package var missingRecords = 0
    /// How many parts of the tree of records were not in the CAR that came in.
    package var missingNodes = 0
    /// What is damaged; empty if nothing is.
    package var flaws: [String] = []
  }

  private typealias Entry = PostWriter.Entry

  /// How much of a page is gathered before it is written.
  private static let piece = 1 << 18
  private static let posts = "app.bsky.feed.post"
  private static let profile = "app.bsky.actor.profile/self"

  private let repository: LaidOutRepository
  private let folder: FilePath
  private let replacing: Bool
  private let observer: Progress.Observer
  private let times: RecordTimes
  private let layout: PageLayout
  private var media: PageMedia
  private var report = Report()
  private var profile: IPLDValue?
  private var done: UInt64 = 0

  /// Writes the pages of a snapshot.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - folder: where; it is made if it is not there.
  ///   - replacing: whether files that are there are replaced.
  /// - Throws: ``BackupError`` if a file is there, or cannot be written; what reading the archive
  ///   throws.
  package static func export(
    _ archived: ArchivedSnapshot, to folder: FilePath, replacing: Bool,
    observer: @escaping Progress.Observer
  ) throws -> Report {
    try BlobFolder.make(folder.string)
    var exporter = try PageExporter(archived, folder, replacing, observer)
    try exporter.run()
    exporter.report.media = exporter.media.count
    exporter.report.missingMedia = exporter.media.missingCount
    exporter.report.flaws += exporter.media.damaged
    return exporter.report
  }

  private init(
    _ archived: ArchivedSnapshot, _ folder: FilePath, _ replacing: Bool,
    _ observer: @escaping Progress.Observer
  ) throws {
    repository = try LaidOutRepository(of: archived)
    (self.folder, self.replacing, self.observer) = (folder, replacing, observer)
    times = RecordTimes(of: archived.snapshot)
    layout = PageLayout(account: archived.snapshot.handle?.text ?? archived.snapshot.did.text)
    media = try PageMedia(of: archived, in: folder, replacing: replacing)
    if let flaw = repository.flaw { report.flaws.append(flaw) }
  }

  private mutating func run() throws {
    try AtomicFile.save(to: folder.appending(PageLayout.styleName), replacing: replacing) {
      let style = Array(PageLayout.style.utf8)
      try $0(style.span)
    }
    var collections: [(name: String, years: [(String, Int)])] = []
    var months: [(String, Int)] = []
    var (collection, entries): (String?, [Entry]) = (nil, [])
    func writeCollection(_ exporter: inout PageExporter) throws {
      guard let collection else { return }
      let sorted = Self.byTime(entries)
      if collection == Self.posts {
        months = try exporter.writePosts(sorted)
      } else {
        collections.append((collection, try exporter.writeRecords(sorted, of: collection)))
      }
    }
    // All records of a collection follow one another.
    let lostNodes = try repository.forEachRecord { path, cid, bytes in
      let parts = path.split(separator: "/", maxSplits: 1).map(String.init)
      if parts[0] != collection {
        try writeCollection(&self)
        (collection, entries) = (parts[0], [])
      }
      let value = Self.value(bytes?.span)
      if path == Self.profile { profile = value }
      let time = times.time(of: Array(path.utf8), createdAt: value?["createdAt"]?.string)
      entries.append(Entry(key: parts.count > 1 ? parts[1] : "", cid: cid, time: time))
    }
    try writeCollection(&self)
    if lostNodes > 0, repository.flaw == nil { report.missingNodes = lostNodes }
    try writeIndex(months, collections)
  }

  private static func byTime(_ entries: [Entry]) -> [Entry] {
    entries.enumerated().sorted {
      ($0.element.time?.seconds ?? 0, $0.offset) < ($1.element.time?.seconds ?? 0, $1.offset)
    }.map(\.element)
  }

  /// What a record says; nil if it is not there, or cannot be read.
  private func value(_ cid: CID) -> IPLDValue? {
    repository.withBlock(cid) { Self.value($0) } ?? nil
  }

  private static func value(_ block: Span<UInt8>?) -> IPLDValue? {
    guard let block else { return nil }
    return try? DAGCBORDecoder.decode(block)
  }

  /// Divides entries in the order of time where the beginnings of their days differ.
  private static func divide(_ entries: [Entry], _ length: Int) -> [(String, ArraySlice<Entry>)] {
    var parts: [(name: String, entries: ArraySlice<Entry>)] = []
    for (index, entry) in entries.enumerated() {
      let name = entry.time.map { String($0.day.prefix(length)) } ?? "undated"
      let start = parts.last?.name == name ? parts.removeLast().entries.startIndex : index
      parts.append((name, entries[start...index]))
    }
    return parts
  }

  private mutating func count() {
    done += 1
    if done % 64 == 0 {
      let total = UInt64(clamping: repository.archived.snapshot.counts.records)
      observer(Progress(stage: "pages", done: done, total: total))
    }
  }

  // MARK: Posts

  private mutating func writePosts(_ entries: [Entry]) throws -> [(String, Int)] {
    let months = Self.divide(entries, 7)
    var pages: [String: String] = [:]
    for (month, entries) in months { for entry in entries { pages[entry.key] = "\(month).html" } }
    let writer = PostWriter(did: repository.archived.snapshot.did) { pages[$0] }
    for (index, (month, entries)) in months.enumerated() {
      var links = [(file: "index.html", name: "Contents")]
      if index > 0 { links.append(("\(months[index - 1].0).html", "Earlier")) }
      if index + 1 < months.count { links.append(("\(months[index + 1].0).html", "Later")) }
      let title = PageLayout.name(ofMonth: month)
      try write("\(month).html", title, links, entries) { exporter, entry, html in
        let value = exporter.value(entry.cid)
        if value == nil { exporter.report.missingRecords += 1 }
        exporter.report.posts += 1
        try writer.write(entry, value, &exporter.media, to: &html)
      }
    }
    return months.map { ($0.0, $0.1.count) }
  }

  /// Writes a page record by record.
  private mutating func write(
    _ name: String, _ title: String, _ links: [(file: String, name: String)],
    _ entries: ArraySlice<Entry>,
    _ record: (inout PageExporter, Entry, inout HTMLText) throws -> Void
  ) throws {
    try AtomicFile.save(to: folder.appending(name), replacing: replacing) { sink in
      var html = layout.begin(title, links: links)
      html.element("h1", [:], title)
      for entry in entries {
        try record(&self, entry, &html)
        count()
        if html.bytes.count >= Self.piece { try html.move(to: sink) }
      }
      html.markup(PageLayout.ending)
      try html.move(to: sink)
    }
    report.pages += 1
  }

  // MARK: Other records

  private mutating func writeRecords(_ entries: [Entry], of collection: String) throws -> [(
    String, Int
  )] {
    let years = Self.divide(entries, 4)
    for (year, entries) in years {
      let title = "\(PageLayout.name(ofCollection: collection)), \(year)"
      try write(Self.file(collection, year), title, [("index.html", "Contents")], entries) {
        exporter, entry, html in
        exporter.report.others += 1
        exporter.write(entry, to: &html)
      }
    }
    return years.map { ($0.0, $0.1.count) }
  }

  private static func file(_ collection: String, _ year: String) -> String {
    FileNaming.component(Array(collection.utf8)[...], ending: "-\(year).html", for: .any)
  }

  private mutating func write(_ entry: Entry, to html: inout HTMLText) {
    html.open("article", ["id": entry.key])
    if let time = entry.time {
      html.element("time", ["datetime": time.text], PageLayout.name(of: time))
    }
    guard let value = value(entry.cid) else {
      report.missingRecords += 1
      html.element("p", ["class": "lost"], "\(entry.key) is not in the archive, or cannot be read.")
      html.markup("</article>\n")
      return
    }
    html.markup("<p dir=\"auto\">")
    let subject = value["subject"]?["uri"]?.string ?? value["subject"]?.string
    if let subject {
      let uri = subject.hasPrefix("did:") ? "at://\(subject)" : subject
      html.link(to: HTMLText.page(of: uri), subject)
    }
    for field in ["displayName", "name", "title", "text", "description"] {
      guard let text = value[field]?.string, !text.isEmpty else { continue }
      html.text("\(text) ")
    }
    html.markup("</p><details><summary class=\"soft\">")
    html.text(entry.key)
    html.markup("</summary>")
    html.element("pre", [:], value.json(pretty: true))
    html.markup("</details></article>\n")
  }

  // MARK: The index

  private mutating func writeIndex(
    _ months: [(String, Int)], _ collections: [(name: String, years: [(String, Int)])]
  ) throws {
    let snapshot = repository.archived.snapshot
    var html = layout.begin("Contents", links: [])
    html.markup("<header>")
    if let banner = try media.file(profile?["banner"], "image/")?.path {
      html.open("img", ["class": "banner", "src": banner, "alt": ""])
    }
    if let avatar = try media.file(profile?["avatar"], "image/")?.path {
      html.open("img", ["class": "avatar", "src": avatar, "alt": ""])
    }
    let name = profile?["displayName"]?.string ?? ""
    html.element("h1", ["dir": "auto"], name.isEmpty ? layout.account : name)
    html.element("p", ["class": "soft"], "\(layout.account) · \(snapshot.did)")
    if let about = profile?["description"]?.string, !about.isEmpty {
      html.element("div", ["class": "text", "dir": "auto"], about)
    }
    let moment = FileTime(snapshot.createdAt).map(PageLayout.name) ?? snapshot.createdAt
    html.element("p", ["class": "soft"], "As it was backed up on \(moment).")
    html.markup("</header>\n")
    var year = ""
    for (month, count) in months {
      if month.prefix(4) != year {
        if !year.isEmpty { html.markup("</ul>") }
        year = String(month.prefix(4))
        html.element("h2", [:], year == "unda" ? "Without a date" : year)
        html.markup("<ul class=\"months\">")
      }
      html.item("\(month).html", PageLayout.name(ofMonth: month), count)
    }
    if !year.isEmpty { html.markup("</ul>\n") }
    for (collection, years) in collections {
      html.element("h2", ["title": collection], PageLayout.name(ofCollection: collection))
      html.markup("<ul class=\"months\">")
      for (year, count) in years { html.item(Self.file(collection, year), year, count) }
      html.markup("</ul>\n")
    }
    html.markup(PageLayout.ending)
    try AtomicFile.save(to: folder.appending("index.html"), replacing: replacing) {
      try html.move(to: $0)
    }
    report.pages += 1
  }
}
