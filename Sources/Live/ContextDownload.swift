internal import ATProtocol
internal import Files
internal import HTTP
internal import IPLD
internal import Snapshots
internal import XRPC

/// Downloads what an app view shows of people and posts.
///
/// 1. Only what was asked for is taken: an answer about anything else is dropped.
/// 2. What cannot be fetched is missing from the context only, and the next backup requests it
///    again.
/// 3. Everything is bounded: an answer by `XRPCQuery`, an item by `Context.maximumItem`, a
///    thumbnail by ``maximumThumbnail``, all of it by ``ContextOptions``.
struct ContextDownload: Sendable {
  let network: Network
  let options: ContextOptions
  /// The moment, in RFC 3339 and UTC.
  let now: String
  /// What has arrived.
  var received: ReceivedContext
  var outcome = ContextOutcome()
  private let client: XRPCClient
  private var proofs: ContextProofs
  private let observer: @Sendable (BackupEvent) -> Void
  /// The results for requested pictures, by their URLs.
  private var pictures: [String: Picture] = [:]

  private enum Picture {
    case kept(ContextItem.Thumbnail)
    /// There is no picture.
    case absent
    /// It did not come, but may come the next time.
    case owed
  }

  /// The most bytes of a thumbnail.
  private static let maximumThumbnail = 900 << 10
  /// After how many failures in a row nothing more is requested.
  private static let maximumFailures = 3
  /// How many requests run at a time, and how many for pictures.
  private static let concurrency = 4
  private static let picturesAtATime = 8
  /// For how many people and posts pictures are requested that did not come before.
  private static let maximumOwed = 2000
  /// After how many seconds a name is requested again: 30 days.
  private static let lifetime: Int64 = 30 * 86_400

  init(
    _ network: Network, _ options: ContextOptions, _ received: ReceivedContext, now: String,
    observer: @escaping @Sendable (BackupEvent) -> Void
  ) {
    (self.network, self.options, self.now, self.observer) = (network, options, now, observer)
    self.received = received
    client = XRPCClient(service: options.appView, network: network)
    proofs = ContextProofs(network, budget: options.proofsOfHost)
  }

  /// Requests what is new of some subjects, and gives up after some time.
  ///
  /// - Returns: all that has arrived, and what went wrong.
  /// - Throws: `CancellationError`; ``BackupError`` if there is no room for what arrives.
  func fetched(_ subjects: [ContextItem.Subject]) async throws -> ContextDownload {
    try await givingUp(after: options.time) {
      var download = self
      try await download.fetch(subjects)
      return download
    }
  }

  private mutating func fetch(_ subjects: [ContextItem.Subject]) async throws {
    do {
      let posts = subjects.filter { if case .post = $0 { isWanted($0) } else { false } }
      try await ask(for: admitted(posts))
      // Those whose posts have come are known by now.
      let people = subjects.filter { if case .person = $0 { isWanted($0) } else { false } }
      try await ask(for: admitted(people))
      try await loadOwed(subjects)
      if options.kind == .signed { try await proveKnown(subjects) }
    } catch is CancellationError {
      outcome.fail("it took too long; the next backup requests the rest")
    } catch let error as TransportError {
      outcome.fail("\(error)")
    }
    (outcome.unproven, outcome.proofsLeftOut) = (proofs.unprovenCount, proofs.leftOutCount)
  }

  /// Whether something is to be requested: what is not known, and names that are old.
  private func isWanted(_ subject: ContextItem.Subject) -> Bool {
    guard let known = received[subject] else { return true }
    if case .post = subject, !known.isAbsent { return false }
    return isOld(known.askedAt)
  }

  /// Whether a time is so long ago that the same may be requested again.
  private func isOld(_ time: String) -> Bool {
    guard let time = Moment(time), let now = Moment(now) else { return false }
    return time.begins(before: now.earlier(by: Self.lifetime))
  }

  /// Those of some subjects for which there is room.
  private mutating func admitted(_ subjects: [ContextItem.Subject]) -> [ContextItem.Subject] {
    var room = options.items - received.count
    return subjects.filter { subject in
      if received[subject] != nil { return true }
      room -= 1
      if room < 0 { outcome.leftOut += 1 }
      return room >= 0
    }
  }

  private mutating func ask(for subjects: [ContextItem.Subject]) async throws {
    let size = XRPCCall.maximumSubjects
    let batches = stride(from: 0, to: subjects.count, by: size).map {
      Array(subjects[$0..<min($0 + size, subjects.count)])
    }
    var failureCount = 0
    for start in stride(from: 0, to: batches.count, by: Self.concurrency) {
      let round = batches[start..<min(start + Self.concurrency, batches.count)]
      observer(.progress(BackupProgress(.context, bytes: received.byteCount)))
      for shown in try await answers(to: Array(round)) {
        if let failure = shown.failure {
          outcome.fail(failure)
          failureCount += 1
        } else {
          try await take(shown)
          failureCount = 0
        }
      }
      guard received.byteCount < options.bytes else {
        outcome.leftOut += batches[(start + round.count)...].reduce(0) { $0 + $1.count }
        return
      }
      guard failureCount < Self.maximumFailures else { return }
    }
  }

  /// What was shown of some subjects, or why nothing was.
  private struct Shown: Sendable {
    let batch: [ContextItem.Subject]
    var posts: [PostView] = []
    var people: [ProfileView] = []
    var failure: String?
  }

  private func answers(to batches: [[ContextItem.Subject]]) async throws -> [Shown] {
    let found = Collected<Shown>()
    try await forEachConcurrently(batches, atATime: Self.concurrency) { [self] batch in
      do {
        await found.add(try await ask(batch))
      } catch let error where error is XRPCError || error is TransportError {
        await found.add(Shown(batch: batch, failure: "\(error)"))
      }
    }
    return await found.items
  }

  /// How often one request is tried.
  private var attempts: Int { min(network.options.attempts, Self.maximumFailures) }

  private func ask(_ batch: [ContextItem.Subject]) async throws -> Shown {
    var (people, posts): ([DID], [ATURI]) = ([], [])
    for subject in batch {
      switch subject {
      case .person(let did): people.append(did)
      case .post(let uri): posts.append(uri)
      }
    }
    var shown = Shown(batch: batch)
    if posts.isEmpty {
      shown.people = try await client.call(.getProfiles(people), attempts: attempts)
    } else {
      shown.posts = try await client.call(.getPosts(posts), attempts: attempts)
    }
    return shown
  }

  // MARK: Taking

  private mutating func take(_ shown: Shown) async throws {
    var open = Set(shown.batch)
    // What has been shown is kept, also if time is over before its pictures have arrived.
    var ending: CancellationError?
    var proven: [String: ContextProof] = [:]
    do {
      try await load(urls(of: shown))
      proven = try await self.proven(shown.posts.filter { open.contains(.post($0.uri)) })
    } catch let error as CancellationError {
      ending = error
    }
    for view in shown.posts where open.remove(.post(view.uri)) != nil {
      try take(view, proven[view.uri.text])
    }
    for view in shown.people where open.remove(.person(view.did)) != nil { try take(view) }
    // What was requested and is not in the answer is not shown.
    for subject in shown.batch where open.contains(subject) {
      try take(.absent(.notFound), of: subject)
    }
    if let ending { throw ending }
  }

  private mutating func take(
    _ content: ContextItem.Content, of subject: ContextItem.Subject, pictures urls: [String] = []
  ) throws {
    var item = ContextItem(subject, content, from: options.appView, at: now)
    addPictures(at: urls, to: &item)
    try received.take(item)
  }

  /// Adds the pictures that have arrived, and notes those that may come the next time.
  private func addPictures(at urls: [String], to item: inout ContextItem) {
    item.owed = urls.filter { if case .owed = pictures[$0, default: .owed] { true } else { false } }
    item.add(urls.compactMap { if case .kept(let picture) = pictures[$0] { picture } else { nil } })
  }

  private mutating func take(_ view: PostView, _ proof: ContextProof?) throws {
    let author = ContextItem.Subject.person(view.author.did)
    guard !view.author.isWithheld else {
      try take(.absent(.withheld), of: .post(view.uri))
      if isWanted(author) { try take(.absent(.withheld), of: author) }
      return
    }
    var post = ContextItem.Post(view)
    try note(proof, of: &post)
    try take(.post(post), of: .post(view.uri), pictures: view.thumbnails)
    outcome.posts += 1
    if isWanted(author), received.count < options.items { try take(view.author) }
  }

  private mutating func take(_ view: ProfileView) throws {
    let subject = ContextItem.Subject.person(view.did)
    guard !view.isWithheld else { return try take(.absent(.withheld), of: subject) }
    var person = ContextItem.Person()
    (person.handle, person.displayName) = (view.handle, view.displayName)
    person.description = view.description
    person.avatar = try view.avatar.flatMap { try keptAvatar(at: $0, of: subject) }
    let urls = person.avatar == nil ? view.avatar.map { [$0] } ?? [] : []
    try take(.person(person), of: subject, pictures: urls)
    outcome.people += 1
  }

  // MARK: Proofs

  /// The proofs of posts that were shown just now.
  private mutating func proven(_ views: [PostView]) async throws -> [String: ContextProof] {
    guard options.kind == .signed else { return [:] }
    let posts = views.filter { !$0.author.isWithheld }.map { ($0.uri, ContextItem.Post($0)) }
    return try await proofs.proofs(of: posts)
  }

  /// Asks for the proofs of posts that the archive has without one.
  private mutating func proveKnown(_ subjects: [ContextItem.Subject]) async throws {
    let open = subjects.filter { subject in
      guard let known = received[subject], known.lacksProof, !known.isNew else { return false }
      return known.unprovenAt.map(isOld) ?? true
    }
    for start in stride(from: 0, to: open.count, by: XRPCCall.maximumSubjects) {
      guard received.byteCount < options.bytes else { return }
      var items: [ContextItem] = []
      var posts: [(ATURI, ContextItem.Post)] = []
      for subject in open[start..<min(start + XRPCCall.maximumSubjects, open.count)] {
        guard case .post(let uri) = subject, let item = try received.item(subject),
          case .post(let post) = item.content
        else { continue }
        items.append(item)
        posts.append((uri, post))
      }
      let found = try await proofs.proofs(of: posts)
      for (item, (uri, post)) in zip(items, posts) {
        var (item, post) = (item, post)
        try note(found[uri.text], of: &post)
        item.content = .post(post)
        try received.take(item)
      }
    }
  }

  /// Notes the proof of a post, or that there is none.
  private mutating func note(_ proof: ContextProof?, of post: inout ContextItem.Post) throws {
    guard options.kind == .signed else { return }
    if let proof {
      post.proof = ContextItem.Proof(
        car: try received.keep(piece: proof.car), document: try received.keep(piece: proof.document)
      )
      outcome.proofs += 1
    } else {
      post.unprovenAt = now
    }
  }

  // MARK: Thumbnails

  /// Asks for pictures that did not come before: there was no answer or no room, or only names were
  /// wanted.
  private mutating func loadOwed(_ subjects: [ContextItem.Subject]) async throws {
    guard options.kind != .names else { return }
    let open = subjects.filter { received[$0].map { $0.owesPictures && !$0.isNew } ?? false }
    var ending: CancellationError?
    for start in stride(
      from: 0, to: min(open.count, Self.maximumOwed), by: XRPCCall.maximumSubjects)
    {
      guard ending == nil, received.byteCount < options.bytes else { break }
      let batch = open[start..<min(start + XRPCCall.maximumSubjects, open.count)]
      let items = try batch.compactMap { try received.item($0) }
      do {
        try await load(unseen(items.flatMap(\.owed)))
      } catch let error as CancellationError {
        ending = error
      }
      for var item in items {
        let owed = item.owed
        addPictures(at: owed, to: &item)
        if item.owed != owed { try received.take(item) }
      }
    }
    if let ending { throw ending }
  }

  /// Those that have not been requested, each once.
  private func unseen(_ urls: [String]) -> [String] {
    var seen: Set<String> = []
    return urls.filter { pictures[$0] == nil && seen.insert($0).inserted }
  }

  /// The URLs of the pictures that are wanted of what was shown.
  private mutating func urls(of shown: Shown) throws -> [String] {
    guard options.kind != .names else { return [] }
    let open = shown.posts.filter { !$0.author.isWithheld }
    var urls = open.flatMap(\.thumbnails)
    let people = open.map(\.author) + shown.people
    for view in people where !view.isWithheld && isWanted(.person(view.did)) {
      guard let url = view.avatar, try keptAvatar(at: url, of: .person(view.did)) == nil else {
        continue
      }
      urls.append(url)
    }
    return unseen(urls)
  }

  /// The picture that the archive has of a person, if it comes from this URL.
  private mutating func keptAvatar(at url: String, of subject: ContextItem.Subject) throws
    -> ContextItem.Thumbnail?
  {
    guard case .person(let old)? = try received.item(subject)?.content, old.avatar?.source == url
    else { return nil }
    return old.avatar
  }

  /// Fetches pictures, as long as there is room.
  private mutating func load(_ urls: [String]) async throws {
    for start in stride(from: 0, to: urls.count, by: Self.picturesAtATime) {
      guard received.byteCount < options.bytes else {
        return outcome.thumbnailsLeftOut += urls.count - start
      }
      let round = urls[start..<min(start + Self.picturesAtATime, urls.count)]
      let answers = Collected<(url: String, answer: PictureAnswer)>()
      try await forEachConcurrently(Array(round), atATime: Self.picturesAtATime) { [self] url in
        await answers.add((url, try await picture(at: url)))
      }
      for (url, answer) in await answers.items.sorted(by: { $0.url < $1.url }) {
        switch answer {
        case .bytes(let bytes):
          let piece = try received.keep(piece: bytes)
          pictures[url] = .kept(ContextItem.Thumbnail(piece, from: url))
          outcome.thumbnails += 1
        case .none: pictures[url] = .absent
        case .failure: pictures[url] = .owed
        }
      }
      outcome.thumbnailsMissing += round.count { url in
        if case .kept = pictures[url] { false } else { true }
      }
    }
  }

  private enum PictureAnswer: Sendable {
    case bytes([UInt8])
    /// There is no picture.
    case none
    /// It may come the next time.
    case failure
  }

  /// Asks for a picture.
  ///
  /// The app view names the URL, so it is asked only over https, or from the app view itself, and
  /// from addresses to which any server may point.
  ///
  /// - Throws: `CancellationError`.
  private func picture(at url: String) async throws -> PictureAnswer {
    do {
      let target = try HTTPURL(url)
      let isOwn = target.hasSameOrigin(as: try HTTPURL(options.appView))
      guard target.isSecure || isOwn else { return .none }
      var request = HTTPRequest(.get, url, acceptsCompression: false, attempts: 2)
      request.isPointedTo = !isOwn
      request.seconds = 60
      let (delivery, body) = try await network.send(request) { response in
        try await response.body.collect(upTo: Self.maximumThumbnail, of: "\(target)")
      }
      guard let body else {
        return HTTPStatus.mayPass(delivery.response.status) ? .failure : .none
      }
      guard let type = MediaType.signature(of: body.span),
        ["jpg", "png", "gif", "webp", "avif"].contains(type)
      else { return .none }
      return .bytes(body)
    } catch let error as TransportError {
      switch error.reason {
      case .unusableURL, .refusedAddress, .refusedRedirect, .tooManyRedirects, .tooLong:
        return .none
      default: return .failure
      }
    }
  }
}

extension ContextItem.Post {
  /// A post as it was shown, without its thumbnails.
  fileprivate init(_ view: PostView) { self.init(cid: view.cid, record: view.record.json()) }
}
