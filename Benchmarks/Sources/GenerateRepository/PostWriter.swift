import IPLD

/// Writes what posts say: text, and what in the text can be tapped.
struct PostWriter {
  private static let hosts = [
    "www.youtube.com/watch?v=", "youtu.be/", "github.com/", "www.theguardian.com/world/2024/",
    "en.wikipedia.org/wiki/", "www.nytimes.com/2025/", "open.spotify.com/track/", "medium.com/p/",
    "www.bbc.co.uk/news/articles/", "arxiv.org/abs/", "www.reddit.com/r/", "tenor.com/view/",
    "www.instagram.com/p/", "blog.example.org/", "news.example.com/article/", "bit.ly/",
  ]
  private static let letters = Array(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_".utf8)

  /// An address somewhere on the web.
  func link(_ random: inout SeededRandom) -> String {
    let path = (0..<random.number(in: 6...14)).map { _ in random.pick(Self.letters) }
    return "https://" + random.pickRanked(Self.hosts) + String(decoding: path, as: UTF8.self)
  }

  /// The fields `text`, `langs` and `facets` of a post.
  func text(_ authors: [String], _ random: inout SeededRandom) -> IPLDMap {
    let language = Language.any(&random)
    // Most posts are short, and 300 characters is the limit.
    let longest = random.pick([40, 70, 110, 180, 290])
    var text = language.text(length: 8 + random.below(longest - 8), &random)
    var facets: [IPLDValue] = []
    if random.chance(9) {
      append(" ", link(&random), "link", "uri", to: &text, &facets)
    }
    if random.chance(5) {
      let tag = language.word(&random)
      append(" ", "#" + tag, "tag", "tag", value: tag, to: &text, &facets)
    }
    if random.chance(4) {
      let handle = "@\(random.base32(random.number(in: 4...12))).bsky.social"
      append(
        " ", handle, "mention", "did", value: random.pickRanked(authors), to: &text, &facets)
    }
    var post: IPLDMap = ["text": .string(text), "langs": .array([.string(language.code)])]
    if !facets.isEmpty { post["facets"] = .array(facets) }
    return post
  }

  /// Appends a part of the text that leads somewhere, and the facet that says where.
  private func append(
    _ space: String, _ shown: String, _ kind: String, _ field: String, value: String? = nil,
    to text: inout String, _ facets: inout [IPLDValue]
  ) {
    text += space
    let start = text.utf8.count
    text += shown
    facets.append(
      .map([
        "index": .map([
          "byteStart": .integer(Int128(start)), "byteEnd": .integer(Int128(text.utf8.count)),
        ]),
        "features": .array([
          .map([
            "$type": .string("app.bsky.richtext.facet#\(kind)"), field: .string(value ?? shown),
          ])
        ]),
      ]))
  }
}
