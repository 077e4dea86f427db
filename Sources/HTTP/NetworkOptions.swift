/// What a user sets about the network, from options and environment variables.
public struct NetworkOptions: Sendable {
  /// The user agent of requests: name and version, with the project's URL.
  package var userAgent: String
  /// The base URL of the PLC directory.
  public var plcDirectory = "https://plc.directory"
  /// The base URL of a DNS-over-HTTPS resolver that answers `application/dns-json`; nil for the
  /// system's resolver.
  package var dnsOverHTTPS: String?
  /// The base URL of a server that resolves handles (`com.atproto.identity.resolveHandle`), instead
  /// of DNS and well-known files; nil for these.
  public var handleResolver: String?
  /// The base URL of the server to ask, whatever DID documents say; nil to use them.
  package var pds: String?
  /// A file of certificates to trust, in PEM, instead of the system's.
  package var caFile: String?
  /// Hosts with their ports and the addresses to use for them, `host:port:address`.
  package var hostPins: [String] = []
  /// Further servers that the user has named, by their URLs, such as that of a health check; they
  /// may be anywhere.
  package var namedServers: [String] = []
  /// Servers that the user has named, by their URLs, and that may be asked by http where they are
  /// not on the public internet, such as an object store in the next room.
  package var plainServers: [String] = []
  /// Whether any host may be this machine itself, as it may be when one of the servers above is.
  public var allowsLoopback = false
  /// How many requests a second may be sent to a host on average, `--rate`; nil for the reference
  /// server's 10.
  package var requestsPerSecond: Double?
  /// How many requests may be sent to a host at once before the rate counts; nil for the reference
  /// server's 3,000, or a second's worth if a rate is set.
  package var burst: Int?
  /// How many transfers to a host may run at a time.
  package var connectionsPerHost = 16
  /// After how many seconds without a connection a transfer is given up.
  package var connectSeconds = 30
  /// After how many seconds without a byte a transfer is given up.
  package var stallSeconds = 60
  /// How often something is tried that fails for a temporary reason.
  package var attempts = 6
  /// For how many seconds a request is repeated, however often, while its host answers that it is
  /// overloaded or broken; 0 if the attempts alone count.
  package var overloadSeconds = 0.0
  /// The same for what holds archives, an object store or a web server: no such bad minute ends a
  /// long run.
  package var badMinute = 120.0
  /// How many seconds a request waits for a host that allows none, or is away, before it fails with
  /// ``TransportError/Reason/postponed(seconds:)``; nil to wait as long as the host says.
  package var longestWait: Double?
  /// Returns when one more request may be sent to a server, by its origin, as far as other programs
  /// that ask it are concerned; nil if this program asks alone.
  package var admission: (@Sendable (_ origin: String) async throws -> Void)?
  /// Called with events that a person may want to see.
  package var observer: @Sendable (NetworkEvent) -> Void = { _ in }

  /// The defaults.
  public init(userAgent: String) { self.userAgent = userAgent }
}

/// Something that happens on the network.
package enum NetworkEvent: Sendable {
  /// A request was answered, or was not: a line of `--verbose`. It has no header fields, and
  /// queries have no secrets.
  case request(method: String, url: String, outcome: String, seconds: Double)
  /// A request is retried after this many seconds.
  case retry(host: String, seconds: Double, why: String)
  /// All requests to a host wait for it, this many seconds at most.
  case wait(host: String, seconds: Double, why: String)
  /// Requests go through this proxy, which resolves names itself, so addresses cannot be checked;
  /// reported once.
  case proxy(String)

  /// A wait from here on is announced, in seconds.
  static let leastWait = 2.0
}
