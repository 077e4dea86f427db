/// Why no complete answer came.
public struct TransportError: NetworkFault, Equatable, Sendable, CustomStringConvertible {
  /// What happened.
  package enum Reason: Equatable, Sendable {
    /// The URL is neither `https`, nor `http` to a loopback address.
    case unusableURL
    /// A pin does not have the form `host:port:address`.
    case unusablePin
    /// What the environment names as the proxy is none.
    case unusableProxy
    /// The proxy wants a user name and a password, or others.
    case proxyRefused
    /// The name of the host leads to no address.
    case unknownHost
    /// No connection came about.
    case notConnected(String)
    /// The server's certificate is not valid, or TLS failed otherwise.
    case notSecure(String)
    /// Nothing, or next to nothing, arrived for this many seconds.
    case stalled(seconds: Int)
    /// A short answer was not complete after this many seconds.
    case tooSlow(seconds: Int)
    /// The request could not be sent within this many seconds.
    case late(seconds: Double)
    /// The connection ended before the answer did.
    case cutOff(String)
    /// The answer is not HTTP, or its head is too long.
    case malformedAnswer(String)
    /// The address is one that no server on the internet has: private, loopback, link-local, or the
    /// like.
    case refusedAddress(String)
    /// A redirection leads to an address to which none is followed.
    case refusedRedirect(String)
    /// One redirection led to the next, too often.
    case tooManyRedirects
    /// The body is longer than this limit, in bytes.
    case tooLong(limit: Int)
    /// The host has reported an overload so often in a row that it is not asked for now.
    case overloaded
    /// No request to the host has been answered for a while, so that it is not asked for now.
    case silent
    /// The host allows no request for this many seconds, which is longer than the longest wait.
    case postponed(seconds: Double)
    /// libcurl could not be used.
    case unavailable(String)
  }

  /// What happened.
  package var reason: Reason
  /// The requested URL, without the query.
  package var url: String
  /// How often it was tried.
  package var attempts = 1
  /// How much of the body had arrived, in words; nil if not even the head had.
  package var progress: String?
  /// Whether bytes still arrived when it was given up, only too few of them.
  package var isTrickle = false

  /// An error.
  package init(_ reason: Reason, url: String) {
    (self.reason, self.url) = (reason, url)
  }

  /// Whether the next attempt may succeed.
  package var isTransient: Bool {
    switch reason {
    case .unknownHost, .notConnected, .stalled, .tooSlow, .late, .cutOff: true
    default: false
    }
  }

  /// Also a host that is left alone for now may answer later.
  public var mayPass: Bool {
    switch reason {
    case .overloaded, .silent, .postponed: true
    default: isTransient
    }
  }

  /// Whether it is about the proxy, and will be so for every server.
  package var isOfProxy: Bool { reason == .unusableProxy || reason == .proxyRefused }

  /// The sentence for people.
  public var description: String {
    "\(url): \(what)" + (attempts > 1 ? " (\(attempts) attempts)" : "")
  }

  /// What happened, in words, without the URL.
  package var what: String {
    switch reason {
    case .unusableURL: "only https is used, and http to a loopback address"
    case .unusablePin: "not a pin: write host:port:address[,address…]"
    case .unusableProxy: "the proxy that the environment names is not http://HOST:PORT or the like"
    case .proxyRefused: "the proxy refuses the connection without a valid login (status 407)"
    case .unknownHost: "host not found"
    case .notConnected(let why): "no connection: \(why)"
    case .notSecure(let why): "no secure connection: \(why)"
    case .stalled(let seconds) where isTrickle:
      (progress.map { "\($0), and " } ?? "")
        + "less than \(CurlSettings.leastBytesPerSecond) bytes a second for \(seconds) seconds"
    case .stalled(let seconds):
      progress.map { "\($0), then nothing for \(seconds) seconds" }
        ?? "nothing arrived for \(seconds) seconds"
    case .tooSlow(let seconds):
      "the response was incomplete after \(seconds) seconds" + (progress.map { ": \($0)" } ?? "")
    case .late(let seconds): "it could not be sent within \(Int(seconds)) seconds"
    case .cutOff(let why): "the answer was cut off: \(why)"
    case .malformedAnswer(let why): "the answer is malformed: \(why)"
    case .refusedAddress(let address):
      "refused to connect to \(address), which is not on the public internet"
    case .refusedRedirect(let target): "refused to follow a redirection to \(target)"
    case .tooManyRedirects: "too many redirects"
    case .tooLong(let limit): "the answer is longer than \(limit) bytes"
    case .overloaded: "the host keeps refusing requests; paused"
    case .silent: "the host does not respond; paused"
    case .postponed(let seconds): "the host allows no request for \(Int(seconds)) seconds"
    case .unavailable(let why): "libcurl cannot be used: \(why)"
    }
  }
}
