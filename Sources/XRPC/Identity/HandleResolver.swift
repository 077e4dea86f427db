package import ATProtocol
package import HTTP
internal import IPLD

/// Finds the account that a handle leads to.
///
/// Source: [handle](https://atproto.com/specs/handle), "handle resolution". DNS and the handle's
/// own website are asked at the same time, and DNS counts if both answer. Names that do not exist
/// on the internet (a top-level domain that no account may use, or `test`) are asked about only
/// where the user named a server on this machine, or an address for them.
package struct HandleResolver: Sendable {
  /// The result.
  package struct Answer: Hashable, Sendable {
    /// The account.
    package var did: DID
    /// The source of the answer.
    package var source: String
    /// The account that the handle's website names, if that differs from DNS.
    package var conflict: DID?
    /// Whether the source is the handle's own domain, or a server that resolves handles; otherwise
    /// the account's document has to confirm it.
    package var isAuthoritative = true
  }

  /// How long to wait for answers, in addition to the transport's own limits.
  package struct Patience: Sendable {
    /// For DNS, and for the website where DNS knows nothing.
    package var answer: Duration
    /// For the website where DNS has answered: long enough to see a conflict, short enough not to
    /// be noticed.
    package var conflict: Duration

    package init(answer: Duration = .seconds(15), conflict: Duration = .seconds(3)) {
      (self.answer, self.conflict) = (answer, conflict)
    }
  }

  /// The longest file that is read on a website; a DID has no more.
  private static let maximumFile = 2048
  private static let maximumAnswer = 16 << 10

  private let options: NetworkOptions
  private let fetcher: any DocumentFetcher
  private let dns: any TXTResolver
  private let patience: Patience

  /// A resolver under the options that the user set.
  ///
  /// - Parameters:
  ///   - options: what the user set.
  ///   - fetcher: what asks websites and servers.
  ///   - dns: what asks DNS; nil for what the options say.
  ///   - patience: how long answers are waited for.
  package init(
    _ options: NetworkOptions, fetcher: any DocumentFetcher, dns: (any TXTResolver)? = nil,
    patience: Patience = Patience()
  ) {
    self.options = options
    self.fetcher = fetcher
    self.dns =
      dns ?? options.dnsOverHTTPS.map { DNSOverHTTPS($0, fetcher: fetcher) } ?? SystemDNS()
    self.patience = patience
  }

  /// The account that a handle leads to.
  ///
  /// - Throws: ``IdentityError`` if it leads to none, to several, or could not be asked about;
  ///   `CancellationError`.
  package func resolve(_ handle: Handle) async throws -> Answer {
    guard handle.topLevel != "invalid" else { throw IdentityError.unresolvableHandle(handle) }
    var attempts: [Attempt] = []
    let servers: [String]
    if let resolver = options.handleResolver {
      // Remote resolvers are not asked about reserved TLDs.
      servers = handle.hasReservedTopLevel && !NetworkOptions.isLoopback(resolver) ? [] : [resolver]
    } else if handle.hasReservedTopLevel || handle.topLevel == "test" {
      attempts = try await askHere(about: handle)
      servers = [options.pds, options.plcDirectory].compactMap(\.self)
        .filter(NetworkOptions.isLoopback)
    } else {
      attempts = try await askDomain(of: handle)
      servers = [options.pds].compactMap(\.self)
    }
    if let answer = Self.answer(attempts) { return answer }
    for server in servers {
      attempts.append(try await attempt { try await resolution(by: server, of: handle) })
      if let answer = Self.answer(attempts) { return answer }
      guard NetworkOptions.isLoopback(server) else { continue }
      // One that does not resolve handles may be a bare directory with a file.
      attempts.append(try await attempt { try await file(on: server) })
      if var answer = Self.answer(attempts) {
        answer.isAuthoritative = false
        return answer
      }
    }
    throw Self.failure(handle, attempts)
  }

  // MARK: Attempts

  /// The result of one attempt.
  private typealias Attempt = Result<Answer, Miss>

  /// Why an attempt led to no account.
  private struct Miss: Error {
    /// If several attempts miss, the kind that comes last here counts.
    enum Kind: Comparable {
      /// The authority says that there is none.
      case absent
      /// The certificate of the server that was asked is not valid.
      case untrusted
      /// No resolver could be reached.
      case failed
      /// It led to a private address, and was not followed.
      case refused
    }

    let kind: Kind
    /// The sentence for people.
    let why: String
    /// What is wrong with the proxy, if that is why: then no attempt says anything of the handle.
    var proxyFault: TransportError?

    init(_ kind: Kind, _ why: String) { (self.kind, self.why) = (kind, why) }

    /// The miss for an answer that is not successful.
    init(status: Int, _ why: String) {
      self.init(HTTPStatus.mayPass(status) ? .failed : .absent, why)
    }
  }

  private func attempt(_ ask: () async throws -> Answer) async throws -> Attempt {
    do {
      return .success(try await ask())
    } catch let miss as Miss {
      return .failure(miss)
    } catch let error as DNSError {
      if case .untrustedServer = error { return .failure(Miss(.untrusted, "\(error)")) }
      return .failure(Miss(.failed, "\(error)"))
    } catch let error as TransportError {
      let kind: Miss.Kind =
        switch error.reason {
        case .refusedAddress, .refusedRedirect: .refused
        case .notSecure: .untrusted
        default: .failed
        }
      var miss = Miss(kind, "\(error)")
      if error.isOfProxy { miss.proxyFault = error }
      return .failure(miss)
    }
  }

  /// The result of several attempts, the first that found something first; nil if none did.
  private static func answer(_ attempts: [Attempt]) -> Answer? {
    var answer: Answer?
    for case .success(let found) in attempts {
      if let first = answer {
        if first.did != found.did { answer?.conflict = found.did }
      } else {
        answer = found
      }
    }
    return answer
  }

  /// The error for attempts that found nothing.
  private static func failure(_ handle: Handle, _ attempts: [Attempt]) -> IdentityError {
    var misses: [Miss] = []
    for case .failure(let miss) in attempts { misses.append(miss) }
    let complaints = misses.map(\.why)
    if let fault = misses.lazy.compactMap(\.proxyFault).first {
      return .noAnswer("the DID of \(handle)", fault)
    }
    return switch misses.map(\.kind).max() {
    case .refused: .handleRefused(handle, complaints)
    case .failed: .handleUnreachable(handle, complaints)
    case .untrusted: .handleUntrusted(handle, complaints)
    case .absent: .handleNotFound(handle, complaints)
    case nil: .unresolvableHandle(handle)
    }
  }

  // MARK: Asking

  /// Asks DNS and the website, at the same time.
  private func askDomain(of handle: Handle) async throws -> [Attempt] {
    let website = try pinnedWebsite(of: handle) ?? "https://\(handle)"
    // The names that Bluesky gives away have no records in DNS, and all lead to an address: where
    // one does not, the question could not be asked.
    if handle.text.hasSuffix(".bsky.social") {
      return [try await attempt { try await self.file(on: website, isThere: true) }]
    }
    let record = Task { try await txtRecord(of: handle) }
    let file = Task { try await self.file(on: website) }
    defer {
      record.cancel()
      file.cancel()
    }
    let inDNS = try await attempt {
      try await record.value(within: patience.answer, else: DNSError.noAnswer)
    }
    let limit = if case .success = inDNS { patience.conflict } else { patience.answer }
    let onWebsite = try await attempt {
      try await file.value(
        within: limit, else: Miss(.failed, "\(website) did not answer in time"))
    }
    return [inDNS, onWebsite]
  }

  /// Asks the address that the handle is pinned to, and DNS over HTTPS, where this machine answers.
  private func askHere(about handle: Handle) async throws -> [Attempt] {
    var attempts: [Attempt] = []
    if let website = try pinnedWebsite(of: handle) {
      attempts.append(try await attempt { try await file(on: website) })
    }
    if let server = options.dnsOverHTTPS, NetworkOptions.isLoopback(server) {
      attempts.append(try await attempt { try await txtRecord(of: handle) })
    }
    return attempts
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

  /// Asks DNS.
  private func txtRecord(of handle: Handle) async throws -> Answer {
    let name = "_atproto.\(handle)"
    var dids: [DID] = []
    for record in try await dns.records(of: name) where record.hasPrefix("did=") {
      do throws(IdentifierError) {
        let did = try DID(String(record.dropFirst("did=".count)))
        if !dids.contains(did) { dids.append(did) }
      } catch {
        // Others may write there, too.
        continue
      }
    }
    guard let did = dids.first else { throw Miss(.absent, "DNS has no DID under \(name)") }
    guard dids.count == 1 else { throw IdentityError.ambiguousHandle(handle, dids) }
    return Answer(did: did, source: "DNS TXT \(name)")
  }

  /// Asks a website; one that is there has a name that leads to an address.
  private func file(on website: String, isThere: Bool = false) async throws -> Answer {
    let url = "\(website)/.well-known/atproto-did"
    do {
      // Many a website under a handle is gone for good: it is not asked again and again.
      let (response, body) = try await fetcher.get(
        url, limit: Self.maximumFile, accept: "text/plain, */*;q=0.5", retries: false)
      guard response.isSuccess else {
        throw Miss(status: response.status, "\(url) answered \(response.status)")
      }
      let words = String(decoding: body, as: UTF8.self).split(whereSeparator: \.isWhitespace)
      do throws(IdentifierError) {
        return Answer(did: try DID(words.joined(separator: " ")), source: url)
      } catch {
        let excerpt = body.isEmpty ? "" : ": \(IdentityError.excerpt(body))"
        throw Miss(.absent, "\(url) is not a DID\(excerpt)")
      }
    } catch let error as TransportError {
      switch error.reason {
      case .unknownHost where isThere: throw error
      // DNS knows the name or does not; there is no website to ask.
      case .unknownHost, .tooLong, .unusableURL, .tooManyRedirects:
        throw Miss(.absent, "\(error)")
      default: throw error
      }
    }
  }

  /// Asks a server with `com.atproto.identity.resolveHandle`.
  private func resolution(by server: String, of handle: Handle) async throws -> Answer {
    let url = "\(server)/xrpc/com.atproto.identity.resolveHandle?handle=\(handle)"
    let (response, body) = try await fetcher.get(
      url, limit: Self.maximumAnswer, accept: "application/json", retries: true)
    let excerpt = IdentityError.excerpt(body)
    guard response.isSuccess else {
      throw Miss(
        status: response.status,
        "\(server) answered \(response.status)\(excerpt.isEmpty ? "" : ", \(excerpt)")")
    }
    do {
      if let text = try DataModelJSON.decode(body)["did"]?.string {
        return Answer(did: try DID(text), source: server)
      }
    } catch {
      throw Miss(.absent, "\(server) returned no DID: \(excerpt)")
    }
    throw Miss(.absent, "\(server) returned no DID")
  }
}
