package import ATProtocol
package import HTTP
internal import IPLD

/// Finds the account that a handle leads to.
///
/// Source: [handle](https://atproto.com/specs/handle), "handle resolution". DNS and the handle's
/// own website are asked at the same time, and DNS counts if both answer. Names that are not on the
/// internet (`isForDevelopment(_:)`) are asked about only where the user named a server on this
/// machine, or an address for them.
package struct HandleResolver: Sendable {
  /// What came of it.
  package struct Answer: Hashable, Sendable {
    /// The account.
    package var did: DID
    /// Who said so.
    package var source: String
    /// The account that the handle's website names, if that is another one than DNS does.
    package var conflict: DID?
    /// Whether it was the handle's own domain, or a server that resolves handles, that said so; if
    /// not, the account's document has to say it, too.
    package var isAuthoritative = true
  }

  /// How long is waited.
  package struct Limits: Sendable {
    /// For a website when DNS knows nothing, beside the transport's own patience.
    package var website: Duration = .seconds(15)
    /// For the website when DNS has answered: long enough to see a conflict, short enough not to be
    /// noticed.
    package var conflict: Duration = .seconds(3)

    package init() {}
  }

  /// The longest file that is read on a website; a DID has no more.
  private static let maximumFile = 2048
  private static let maximumAnswer = 16 << 10

  /// What one attempt came to.
  enum Outcome: Sendable {
    case found(DID)
    case several([DID])
    /// The authority says that there is none.
    case none(String)
    /// Nobody who knows could be asked.
    case failed(String)
    /// It led to a private address, and was not followed.
    case refused(String)
    /// The certificate of the server that was asked does not hold.
    case untrusted(String)

    /// The outcome of an attempt without an answer.
    init(_ error: TransportError) {
      switch error.reason {
      case .refusedAddress, .refusedRedirect: self = .refused("\(error)")
      case .notSecure: self = .untrusted("\(error)")
      default: self = .failed("\(error)")
      }
    }
  }

  private let options: NetworkOptions
  private let fetcher: any DocumentFetcher
  private let dns: any TXTResolver
  private let limits: Limits

  /// A resolver under the options that the user set.
  package init(_ options: NetworkOptions, fetcher: any DocumentFetcher) {
    let dns: any TXTResolver =
      options.dnsOverHTTPS.map { DNSOverHTTPS($0, fetcher: fetcher) } ?? SystemDNS()
    self.init(options, fetcher: fetcher, dns: dns)
  }

  package init(
    _ options: NetworkOptions, fetcher: any DocumentFetcher, dns: any TXTResolver,
    limits: Limits = Limits()
  ) {
    self.options = options
    self.fetcher = fetcher
    self.dns = dns
    self.limits = limits
  }

  /// The account that a handle leads to.
  ///
  /// - Throws: ``IdentityError`` if it leads to none, to several, or could not be asked about;
  ///   `CancellationError`.
  package func resolve(_ handle: Handle) async throws -> Answer {
    guard handle.topLevel != "invalid" else { throw IdentityError.unresolvableHandle(handle) }
    var attempts: [Attempt] = []
    if let resolver = options.handleResolver {
      // A stranger has nothing to say about names that are nobody's.
      guard !handle.hasReservedTopLevel || Self.isLoopback(resolver) else {
        throw IdentityError.unresolvableHandle(handle)
      }
      if let answer = try await ask(server: resolver, handle, &attempts) { return answer }
      throw Self.failure(handle, attempts)
    }
    if !Self.isForDevelopment(handle) {
      if let answer = try await askDomain(of: handle, &attempts) { return answer }
      if let pds = options.pds, let answer = try await ask(server: pds, handle, &attempts) {
        return answer
      }
      throw Self.failure(handle, attempts)
    }
    return try await resolveForDevelopment(handle)
  }

  /// Whether a handle is a name that nobody has on the internet: under a top-level domain that no
  /// account may use, or under `test`.
  package static func isForDevelopment(_ handle: Handle) -> Bool {
    handle.hasReservedTopLevel || handle.topLevel == "test"
  }

  /// Asks those on this machine who may know: the address that the handle is pinned to, then each
  /// server that the user named.
  private func resolveForDevelopment(_ handle: Handle) async throws -> Answer {
    var attempts: [Attempt] = []
    if let website = try pinnedWebsite(of: handle) {
      attempts.append(try await file(on: website))
    }
    if let server = options.dnsOverHTTPS, Self.isLoopback(server) {
      attempts.append(try await txtRecord(of: handle))
    }
    if let answer = try Self.answer(handle, attempts) { return answer }
    for server in [options.pds, options.plcDirectory] {
      guard let server, Self.isLoopback(server) else { continue }
      if let answer = try await ask(server: server, handle, &attempts) { return answer }
    }
    guard !attempts.isEmpty else { throw IdentityError.unresolvableHandle(handle) }
    throw Self.failure(handle, attempts)
  }

  /// The website of a handle that the user gave an address to: on the usual port, or on any port of
  /// this machine, without TLS.
  private func pinnedWebsite(of handle: Handle) throws -> String? {
    for text in options.hostPins {
      let pin = try HostPin(text)
      guard pin.authority.host == handle.text else { continue }
      if pin.authority.port == 443 { return "https://\(handle)" }
      if pin.addresses.allSatisfy({ $0.scope == .loopback }) {
        return "http://\(handle):\(pin.authority.port)"
      }
    }
    return nil
  }

  // MARK: Asking

  /// An attempt, and who was asked.
  struct Attempt: Sendable {
    let source: String
    let outcome: Outcome

    /// What a person reads of an attempt that did not lead to an account.
    var complaint: String? {
      switch outcome {
      case .none(let why), .failed(let why), .refused(let why), .untrusted(let why): why
      case .found, .several: nil
      }
    }
  }

  /// Asks DNS and the website, at the same time.
  private func askDomain(of handle: Handle, _ attempts: inout [Attempt]) async throws -> Answer? {
    let website = try pinnedWebsite(of: handle) ?? "https://\(handle)"
    // The names that Bluesky gives away have no records in DNS, and all lead to an address: where one
    // does not, nobody could be asked.
    if handle.text.hasSuffix(".bsky.social") {
      attempts.append(try await file(on: website, isThere: true))
      return try Self.answer(handle, attempts)
    }
    let record = Task { try await txtRecord(of: handle) }
    let file = Task { try await self.file(on: website) }
    defer {
      record.cancel()
      file.cancel()
    }
    func attempt(
      _ task: Task<Attempt, any Error>, _ limit: Duration, _ source: String, _ why: String
    )
      async throws -> Attempt
    {
      do {
        return try await task.value(within: limit, else: TimeIsUp())
      } catch is TimeIsUp {
        return Attempt(source: source, outcome: .failed(why))
      }
    }
    let inDNS = try await attempt(record, limits.website, "DNS", "\(DNSError.noAnswer)")
    let limit = if case .found = inDNS.outcome { limits.conflict } else { limits.website }
    let onWebsite = try await attempt(file, limit, website, "\(website) did not answer in time")
    attempts += [inDNS, onWebsite]
    return try Self.answer(handle, attempts)
  }

  private struct TimeIsUp: Error {}

  /// What attempts come to, the first that found something first.
  private static func answer(_ handle: Handle, _ attempts: [Attempt]) throws -> Answer? {
    var answer: Answer?
    for attempt in attempts {
      switch attempt.outcome {
      case .several(let dids): throw IdentityError.ambiguousHandle(handle, dids)
      case .found(let did):
        if let first = answer {
          if first.did != did { answer?.conflict = did }
        } else {
          answer = Answer(did: did, source: attempt.source)
        }
      case .none, .failed, .refused, .untrusted: break
      }
    }
    return answer
  }

  private static func failure(_ handle: Handle, _ attempts: [Attempt]) -> IdentityError {
    let complaints = attempts.compactMap(\.complaint)
    let outcomes = attempts.map(\.outcome)
    if outcomes.contains(where: { if case .refused = $0 { true } else { false } }) {
      return .handleRefused(handle, complaints)
    }
    if outcomes.contains(where: { if case .failed = $0 { true } else { false } }) {
      return .handleUnreachable(handle, complaints)
    }
    if outcomes.contains(where: { if case .untrusted = $0 { true } else { false } }) {
      return .handleUntrusted(handle, complaints)
    }
    return .handleNotFound(handle, complaints)
  }

  /// Asks DNS.
  private func txtRecord(of handle: Handle) async throws -> Attempt {
    let name = "_atproto.\(handle)"
    let source = "DNS TXT \(name)"
    do {
      return Attempt(
        source: source, outcome: Self.outcome(of: try await dns.records(of: name), name))
    } catch let error as DNSError {
      if case .untrustedServer = error {
        return Attempt(source: source, outcome: .untrusted("\(error)"))
      }
      return Attempt(source: source, outcome: .failed("\(error)"))
    }
  }

  private static func outcome(of records: [String], _ name: String) -> Outcome {
    var dids: [DID] = []
    for record in records where record.hasPrefix("did=") {
      do {
        let did = try DID(String(record.dropFirst("did=".count)))
        if !dids.contains(did) { dids.append(did) }
      } catch {
        // Others may write there, too.
        continue
      }
    }
    switch dids.count {
    case 0: return .none("DNS has no DID under \(name)")
    case 1: return .found(dids[0])
    default: return .several(dids)
    }
  }

  /// Asks a website; one that is there has a name that leads to an address.
  private func file(on website: String, isThere: Bool = false) async throws -> Attempt {
    let url = "\(website)/.well-known/atproto-did"
    return Attempt(source: url, outcome: try await file(url, isThere: isThere))
  }

  private func file(_ url: String, isThere: Bool) async throws -> Outcome {
    let response: HTTPResponse
    let body: [UInt8]
    do {
      // Many a website under a handle is gone for good: it is not asked again and again.
      (response, body) = try await fetcher.get(
        url, limit: Self.maximumFile, accept: "text/plain, */*;q=0.5", retries: false)
    } catch let error as TransportError {
      switch error.reason {
      case .unknownHost where isThere: return Outcome(error)
      // DNS knows the name or does not; there is no website to ask.
      case .unknownHost, .tooLong, .unusableURL, .tooManyRedirects: return .none("\(error)")
      default: return Outcome(error)
      }
    }
    guard response.isSuccess else {
      let why = "\(url) answered \(response.status)"
      return response.status >= 500 || response.status == 429 ? .failed(why) : .none(why)
    }
    let text = String(decoding: body, as: UTF8.self)
    let words = text.split(whereSeparator: \.isWhitespace)
    do {
      guard words.count == 1 else { throw IdentifierError(kind: .did, reason: .empty, offset: 0) }
      return .found(try DID(String(words[0])))
    } catch {
      return .none("\(url) is no DID\(body.isEmpty ? "" : ": \(IdentityError.excerpt(body))")")
    }
  }

  /// Asks a server that resolves handles; one on this machine that does not may be a bare directory
  /// with a file.
  private func ask(server: String, _ handle: Handle, _ attempts: inout [Attempt]) async throws
    -> Answer?
  {
    let attempt = try await resolution(by: server, of: handle)
    attempts.append(attempt)
    if let answer = try Self.answer(handle, [attempt]) { return answer }
    guard Self.isLoopback(server) else { return nil }
    let file = try await file(on: server)
    attempts.append(file)
    guard var answer = try Self.answer(handle, [file]) else { return nil }
    answer.isAuthoritative = false
    return answer
  }

  /// Asks with `com.atproto.identity.resolveHandle`.
  private func resolution(by server: String, of handle: Handle) async throws -> Attempt {
    let url = "\(server)/xrpc/com.atproto.identity.resolveHandle?handle=\(handle)"
    func attempt(_ outcome: Outcome) -> Attempt { Attempt(source: server, outcome: outcome) }
    let response: HTTPResponse
    let body: [UInt8]
    do {
      (response, body) = try await fetcher.get(
        url, limit: Self.maximumAnswer, accept: "application/json", retries: true)
    } catch let error as TransportError {
      return attempt(Outcome(error))
    }
    guard response.isSuccess else {
      let excerpt = IdentityError.excerpt(body)
      let why = "\(server) answered \(response.status)\(excerpt.isEmpty ? "" : ", \(excerpt)")"
      return attempt(
        response.status >= 500 || response.status == 429 ? .failed(why) : .none(why))
    }
    do {
      guard let text = try DataModelJSON.decode(body)["did"]?.string else {
        return attempt(.none("\(server) answered without a DID"))
      }
      return attempt(.found(try DID(text)))
    } catch {
      return attempt(.none("\(server) did not answer with a DID: \(IdentityError.excerpt(body))"))
    }
  }

  private static func isLoopback(_ server: String) -> Bool {
    NetworkOptions.isLoopback(server)
  }
}
