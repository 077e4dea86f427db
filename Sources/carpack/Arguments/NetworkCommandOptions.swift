internal import ATProtocol
internal import ArgumentParser
internal import HTTP
internal import Reports
internal import SystemPackage
internal import Terminal

/// Which servers a verb asks, how it reaches them and how often.
///
/// Options that are not on the command line are taken from the environment; an empty variable
/// counts as not set.
struct NetworkCommandOptions: ParsableArguments {
  /// The user agent of every request.
  private static let userAgent =
    "carpack/\(Program.version) (+https://github.com/carpack/carpack)"

  @Option(
    name: .customLong("plc"),
    help: ArgumentHelp(
      "The PLC directory, instead of https://plc.directory (CARPACK_PLC_URL, ATP_PLC_HOST).",
      valueName: "url"))
  var plcDirectory: String?

  @Option(
    help: ArgumentHelp(
      "A server that resolves handles, instead of DNS and the handle's own website (CARPACK_HANDLE_RESOLVER).",
      valueName: "url"))
  var resolver: String?

  @Option(
    name: .customLong("dns"),
    help: ArgumentHelp(
      "A DNS-over-HTTPS resolver with a JSON interface, instead of the system's (CARPACK_DNS_URL).",
      valueName: "url"))
  var dnsOverHTTPS: String?

  @Option(
    help: ArgumentHelp(
      "The account's server, whatever its DID document says (CARPACK_PDS_URL).", valueName: "url"))
  var pds: String?

  @Option(
    help: ArgumentHelp(
      "The certificates to trust, in PEM, instead of the system's (CARPACK_CA_FILE, SSL_CERT_FILE, CURL_CA_BUNDLE).",
      valueName: "file"),
    completion: .file(extensions: ["pem", "crt"]))
  var caFile: String?

  @Option(
    name: .customLong("pin"),
    help: ArgumentHelp(
      "The addresses to use for a host and port, whatever DNS says; may be repeated (CARPACK_PINS, separated by spaces or newlines).",
      valueName: "host:port:address,…"))
  var pins: [String] = []

  @Option(
    help: ArgumentHelp(
      "Average requests per second to one server (default: 10, in bursts of up to 3000).",
      valueName: "n"))
  var rate: Double?

  @Option(help: ArgumentHelp("Parallel transfers from one server.", valueName: "n"))
  var connections = 16

  @Option(
    help: ArgumentHelp(
      "Give up a transfer after this many seconds without a byte.", valueName: "seconds"))
  var timeout = 60

  @Option(
    help: ArgumentHelp(
      "Attempts per request after temporary failures.", valueName: "n"))
  var attempts = 6

  @Flag(help: "Print each request and its response status.")
  var verbose = false

  func validate() throws {
    if let rate, !(rate > 0 && rate.isFinite) {
      throw ValidationError("--rate must be greater than 0")
    }
    let whole = [
      ("connections", connections, 256), ("timeout", timeout, 86_400), ("attempts", attempts, 100),
    ]
    for (name, value, maximum) in whole where !(1...maximum ~= value) {
      throw ValidationError("--\(name) takes 1 to \(maximum)")
    }
  }

  /// The options, from here or the environment.
  ///
  /// - Throws: ``Failure`` if a URL is not one that can be used.
  func options() throws -> NetworkOptions {
    var options = NetworkOptions(userAgent: Self.userAgent)
    if let url = try Self.url(plcDirectory, "plc") {
      options.plcDirectory = url
    }
    options.handleResolver = try Self.url(resolver, "resolver")
    options.dnsOverHTTPS = try Self.url(dnsOverHTTPS, "dns")
    options.pds = try Self.url(pds, "pds")
    options.caFile = try certificates()
    options.hostPins = try hostPins()
    options.requestsPerSecond = rate
    options.connectionsPerHost = connections
    options.stallSeconds = timeout
    options.attempts = attempts
    let isVerbose = verbose
    options.observer = { event in
      if case .proxy(let proxy) = event {
        Console.say(.warning, "\(Self.proxyWarning(proxy))")
      } else if isVerbose, let line = event.line {
        Console.say(line)
      }
    }
    return options
  }

  /// What the environment sets, for verbs without these options.
  ///
  /// - Throws: ``Failure`` if something that is set cannot be used.
  static func fromEnvironment() throws -> NetworkOptions {
    try NetworkCommandOptions.parse([]).options()
  }

  /// How much of a file of certificates is searched for one: bundles have some 200 kB.
  private static let longestCertificates = 1 << 20

  /// The file of certificates, which must exist before the first request.
  private func certificates() throws -> String? {
    let found =
      caFile.map { (name: "--ca-file", value: $0) } ?? Self.variable("ca-file")
    guard let found else { return nil }
    let text: String
    do {
      let file = try FileDescriptor.open(FilePath(found.value), .readOnly)
      text = try file.closeAfter {
        try unsafe String(unsafeUninitializedCapacity: Self.longestCertificates) { buffer in
          try unsafe file.read(into: UnsafeMutableRawBufferPointer(buffer))
        }
      }
    } catch let error as Errno {
      throw Failure(
        "could not read the certificates in \(found.value) (\(found.name)): \(error)",
        status: .noInput)
    }
    guard text.contains("CERTIFICATE-----") else {
      throw Failure(
        "no certificate in \(found.value) (\(found.name))",
        hint: "the file must be in PEM format, which begins with -----BEGIN CERTIFICATE-----",
        status: .noInput)
    }
    return found.value
  }

  /// The pins of the command line, or else of the environment.
  private func hostPins() throws -> [String] {
    guard pins.isEmpty, let variable = Self.variable("pin") else { return pins }
    do throws(TransportError) {
      return try HostPin.list(variable.value)
    } catch {
      throw Failure("\(variable.name): \(error)", status: .usage)
    }
  }

  /// A URL that was given or is in the environment, without a slash at its end.
  static func url(_ given: String?, _ option: String) throws -> String? {
    let found = given.map { (name: "--\(option)", value: $0) } ?? variable(option)
    guard let found else { return nil }
    do throws(ServerOriginError) {
      let (origin, path) = try ServerOrigin.split(Self.withScheme(found.value))
      return origin.text + (path.hasSuffix("/") ? path.dropLast() : path)
    } catch {
      throw Failure(
        "\(found.name) cannot be used, \"\(found.value)\": \(error)", status: .usage)
    }
  }

  /// A host alone is asked by https, and this machine by http.
  private static func withScheme(_ text: String) -> String {
    guard !text.contains("://") else { return text }
    let isLocal = ["localhost", "127.", "[::1]"].contains(where: text.hasPrefix)
    return "\(isLocal ? "http" : "https")://\(text)"
  }

  /// The warning about a proxy.
  static func proxyWarning(_ proxy: String) -> String {
    "requests go through the proxy \(proxy), which looks up names itself, so carpack cannot check addresses"
  }
}

extension NetworkCommandOptions: ConfigurableOptions {
  /// The variables that give an option, where it is not on the command line.
  private static let variables = [
    "plc": ["CARPACK_PLC_URL", "ATP_PLC_HOST"], "resolver": ["CARPACK_HANDLE_RESOLVER"],
    "dns": ["CARPACK_DNS_URL"], "pds": ["CARPACK_PDS_URL"], "pin": ["CARPACK_PINS"],
    "ca-file": ["CARPACK_CA_FILE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"],
  ]

  static let settings = [
    ("plc", .text), ("resolver", .text), ("dns", .text), ("pds", .text), ("ca-file", .path),
    ("pin", .list), ("rate", .text), ("connections", .text), ("timeout", .text),
    ("attempts", .text), ("verbose", .flag),
  ].map { Setting(name: $0, kind: $1, isGeneral: true, variables: variables[$0] ?? []) }

  /// The value of an option in the environment.
  private static func variable(_ option: String) -> (name: String, value: String)? {
    Host.environment(variables[option] ?? [])
  }
}

extension NetworkEvent {
  /// A line about it.
  fileprivate var line: String? {
    switch self {
    case .request(let method, let url, let outcome, let seconds):
      "\(method) \(url): \(outcome), \(Int((seconds * 1000).rounded())) ms"
    case .retry(let host, let seconds, let why):
      "\(host): \(why); trying again in \(Quantity.duration(seconds: seconds))"
    case .wait, .proxy: nil
    }
  }

  /// The line that explains a wait: for which host, until when and why; nil for anything but a
  /// wait.
  var waitingLine: String? {
    guard case .wait(let host, let seconds, let why) = self else { return nil }
    return
      "waiting for \(host) until \(Host.timeOfDay(inSeconds: seconds)) at most (\(Quantity.duration(seconds: seconds))): \(why)"
  }
}
