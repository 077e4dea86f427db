import ATProtocol
import FuzzSupport
import IPLD

@testable import HTTP
@testable import XRPC

/// What servers answer: a body is read by every endpoint or refused, a head gives numbers that can
/// be waited for, and no message disturbs a terminal or gives a secret away.
///
/// The first byte of the input says what the rest is: a body if it is even, a head if it is odd.
enum FuzzAnswer: Fuzzer {
  /// What was sent along, and a server may send back.
  private static let secret = Secret("s3cr3t")

  static func run(_ bytes: Span<UInt8>) {
    guard bytes.count > 0 else { return }
    let rest = bytes.extracting(droppingFirst: 1)
    if bytes[0] & 1 == 0 { body(rest.copy) } else { head(lines(of: rest)) }
  }

  // MARK: Bodies

  private static func body(_ body: [UInt8]) {
    guard let account = try? DID("did:plc:aaaaaaaaaaaaaaaaaaaaaaaa") else {
      fatalError("the account's DID is none")
    }
    let response = HTTPResponse(status: 200, url: "https://pds.example.com/xrpc/some")
    let delivery = Network.Delivery(response: response, errorBody: body, attempts: 3)
    let refusal = XRPCError(XRPCCall(get: "some"), delivery, body: body, hiding: [secret])
    check(refusal)
    _ = refusal.declared(RepoError.self)
    func read<Output>(_ query: XRPCQuery<Output>) -> Output? {
      do throws(XRPCError) {
        return try query.read(body, delivery, hiding: [secret])
      } catch {
        check(error)
        return nil
      }
    }
    let json = try? DataModelJSON.decode(body)
    _ = read(.getLatestCommit(account))
    if let page = read(.listBlobs(account)) {
      require(
        page.cids.count + page.malformed.count == json?["cids"]?.array?.count, "a blob is lost")
      for text in page.malformed where !text.isEmpty { requireLegible(text, limit: 300) }
    }
    if let page = read(.listRepos()) {
      require(
        page.repos.count + page.malformed.count == json?["repos"]?.array?.count,
        "an account is lost")
    }
    let session = read(.createSession(account.text, secret))
    require((session == nil) == (read(.refreshSession()) == nil), "one is a session")
    if let session {
      for token in [session.accessJwt, session.refreshJwt] {
        require(
          !token.text.isEmpty && token.text.utf8.allSatisfy { 0x21..<0x7f ~= $0 },
          "a token that breaks a header")
        expiry(token.text)
      }
      let shown = "\(session)"
      require(
        session.accessJwt.text.utf8.count < 16 || !shown.contains(session.accessJwt.text),
        "a token shows")
    }
  }

  private static func check(_ error: XRPCError) {
    let text = "\(error)"
    requireLegible(text)
    require(
      Array(text.utf8).firstRange(of: Array(secret.text.utf8)) == nil, "the secret shows: \(text)")
  }

  private static func expiry(_ text: String) {
    _ = JSONWebToken.expiry(Secret(text))
  }

  // MARK: Heads

  private static func head(_ lines: [[UInt8]]) {
    let url = "https://pds.example.com/xrpc/some?a=b"
    guard let parsed = try? HTTPURL(url) else { fatalError("no URL") }
    var head = Reception(of: parsed)
    var taken = 0
    do throws(TransportError) {
      for line in lines {
        let line = line + [0x0d, 0x0a]
        _ = try head.takeLine(line.span)
        taken += line.count
      }
    } catch {
      requireLegible(error.what)
      return
    }
    let response = head.response
    require(taken <= Reception.maximumHead, "a head that is too long is taken")
    require(
      response.status == 0 || 100..<1000 ~= response.status, "a status of \(response.status)")
    require(!head.isComplete || response.status >= 200, "it ends before the answer")
    _ = response.contentLength
    for present in [0, 1_700_000_000.5, 4e9] {
      let said = RateLimitFields(response, unixTime: present)
      for seconds in [said.reset, said.window, said.retryAfter, said.wait] {
        guard let seconds else { continue }
        require(
          (0...RateLimitFields.longestWait).contains(seconds),
          "to be waited for: \(seconds) seconds")
      }
      require((said.limit ?? 0) >= 0 && (said.remaining ?? 0) >= 0, "less than nothing is left")
    }
    if let location = response["location"] { redirect(from: url, to: location) }
    for (_, value) in response.fields {
      if let range = ContentRange(value) {
        require(range.first <= range.last, "a range that ends before it begins")
        require(range.total.map { range.last < $0 } ?? true, "a range beyond the whole")
      }
      if let moment = HTTPDate.unixTime(value) {
        require((0..<260_000_000_000).contains(moment), "a moment that is none: \(moment)")
      }
      expiry(value)
    }
  }

  /// Follows a redirection as far as its URL.
  private static func redirect(from url: String, to location: String) {
    guard let base = try? HTTPURL(url) else { fatalError("no URL") }
    do throws(TransportError) {
      let target = try HTTPURL(location, relativeTo: base)
      requireLegible(
        "\(TransportError(.refusedRedirect("\(target)"), url: "\(base)"))", limit: 1 << 17)
      guard let again = try? HTTPURL(target.text) else { fatalError("\(target) is no URL") }
      require(again == target, "\(target) changes when it is read again")
      require(!target.authority.host.isEmpty, "a URL without a host")
    } catch {
      requireLegible("\(TransportError(.refusedRedirect(error.url), url: "\(base)"))")
    }
  }

  // MARK: Seeds

  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]] {
    let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
    let cid = "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454"
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3MDAwMDAwMDB9.c2ln"
    let bodies = [
      #"{"error":"RepoNotFound","message":"Could not find repo for DID: s3cr3t"}"#,
      #"{"error":"ExpiredToken","message":"Token \#(token) has expired\nand more\u202e"}"#,
      "<html><head><title>502 Bad Gateway</title></head>\n<body>\u{1b}[31m s3cr3t</body></html>",
      "Internal Server Error", "",
      #"{"did":"\#(did)","handle":"a.example.com","didDoc":{},"collections":["app.bsky.feed.post"],"handleIsCorrect":true}"#,
      #"{"did":"did:web:pds.example.com","availableUserDomains":[".example.com"],"blobUploadLimit":52428800}"#,
      #"{"cid":"\#(cid)","rev":"3jui7kd54zh2y"}"#,
      #"{"did":"\#(did)","active":false,"status":"deactivated","rev":"3jui7kd54zh2y"}"#,
      #"{"cids":["\#(cid)","x\u0007",{"$link":"\#(cid)"},5],"cursor":12}"#,
      #"{"repos":[{"did":"\#(did)","head":"\#(cid)","rev":"3jui7kd54zh2y","active":true},{"did":"x"}],"cursor":"a"}"#,
      #"{"accessJwt":"\#(token)","refreshJwt":"\#(token)","did":"\#(did)","active":true,"status":"x","didDoc":{"id":"\#(did)"}}"#,
    ]
    let heads = [
      """
      HTTP/1.1 429 Too Many Requests
      Date: Sun, 06 Nov 1994 08:49:37 GMT
      RateLimit-Limit: 3000
      RateLimit-Remaining: 0
      RateLimit-Reset: 1700000300
      RateLimit-Policy: 3000;w=300
      Retry-After: 12.5
      Content-Length: 12

      """,
      "HTTP/1.1 103 Early Hints\nLink: x\n\nHTTP/2 206 \ncontent-range: bytes 100-199/200\ncontent-encoding: gzip\n\nx: y",
      "HTTP/1.1 503 x\nretry-after: Sun, 06 Nov 2094 08:49:37 GMT\nx-token: \(token)\n folded\n\n",
      "HTTP/1.1 301 x\nLocation: //other.example.com:80/a%20b?c#d\n\n",
      "HTTP/1.1 302 x\nLocation: HTTP://[::1]:8080/\u{1b}[2J\n\n",
      "HTTP/1.1 302 x\nLocation: ../x y?z\nContent-Range: bytes */3\n\n",
    ]
    return bodies.map { [0] + $0.utf8 } + heads.map { [1] + $0.utf8 }
  }
}
