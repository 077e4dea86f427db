internal import HTTP
internal import Synchronization

/// What a worker has done since it began, and the state of the queues, as numbers.
package final class FleetCounters: Sendable {
  /// The numbers.
  package struct Values: Sendable {
    /// Accounts that are being backed up.
    package var running = 0
    /// Backups that have ended.
    package var ended = 0
    /// Backups that have ended, by their results.
    package var complete = 0, incomplete = 0, failed = 0
    /// Accounts that were given up because the lease could not be renewed.
    package var lost = 0
    /// Bytes added to archives.
    package var added: UInt64 = 0
    /// Hosts whose accounts were listed.
    package var listed = 0
    /// Events of firehoses.
    package var events = 0
    /// When the lease was last renewed.
    var renewed = ContinuousClock.now
    /// Requests to each server, those that failed, and the seconds that they took together.
    var requests: [String: (count: Int, failed: Int, seconds: Double)] = [:]

    mutating func count(_ outcome: FleetOutcome) {
      ended += 1
      added += outcome.added
      switch outcome.verdict {
      case .complete: complete += 1
      case .incomplete: incomplete += 1
      case .failed: failed += 1
      }
    }
  }

  private let numbers = Mutex(Values())
  private let waiting = Mutex<[FleetHost]>([])

  /// What is asked of a website about a handle or a DID: such requests are counted together.
  private static let identityPaths: Set = [".well-known/atproto-did", ".well-known/did.json"]
  /// How many servers are counted by name; all others together are `other`.
  private static let mostServers = 500
  /// After how many seconds without a renewed lease a worker counts as unhealthy.
  private static let patience: Duration = .seconds(60)

  /// Nothing yet.
  package init() {}

  /// The numbers as they are now.
  package var values: Values { numbers.withLock { $0 } }

  /// The queues of all hosts, as they were last read.
  var queues: [FleetHost] {
    get { waiting.withLock { $0 } }
    set { waiting.withLock { $0 = newValue } }
  }

  func change(_ body: (inout Values) -> Void) { numbers.withLock { body(&$0) } }

  /// Counts what happens on the network.
  func note(_ event: NetworkEvent) {
    guard case .request(_, let url, let outcome, let seconds) = event else { return }
    let parts = url.split(separator: "/", maxSplits: 2)
    // Each handle, and each DID of the web, has a website of its own.
    let isIdentity = parts.last.map { Self.identityPaths.contains(String($0)) } ?? false
    let origin = isIdentity ? "identities" : parts.prefix(2).joined(separator: "//")
    change { values in
      let isNamed = values.requests[origin] != nil || values.requests.count < Self.mostServers
      var entry = values.requests[isNamed ? origin : "other"] ?? (0, 0, 0)
      entry.count += 1
      entry.seconds += seconds
      if !outcome.hasPrefix("status 2") { entry.failed += 1 }
      values.requests[isNamed ? origin : "other"] = entry
    }
  }

  /// The answer to a request for a path: `/metrics` as Prometheus takes it, `/healthz`; nil for any
  /// other.
  ///
  /// Source: [Prometheus' text
  /// format](https://prometheus.io/docs/instrumenting/exposition_formats/).
  package func answer(_ path: String) -> (status: String, text: String)? {
    switch path {
    case "/metrics": return ("200 OK", text)
    case "/healthz":
      let age = values.renewed.duration(to: .now)
      guard age >= Self.patience else { return ("200 OK", "ok\n") }
      let words = "the database has not answered for \(Int(age / .seconds(1))) seconds\n"
      return ("503 Service Unavailable", words)
    default: return nil
    }
  }

  private var text: String {
    let values = values
    var text = ""
    func metric(_ name: String, _ kind: String, _ help: String, _ samples: [(String, Double)]) {
      text += "# HELP carpack_fleet_\(name) \(help)\n# TYPE carpack_fleet_\(name) \(kind)\n"
      for (labels, value) in samples {
        let number = Int(exactly: value).map { "\($0)" } ?? "\(value)"
        text += "carpack_fleet_\(name)\(labels) \(number)\n"
      }
    }
    func one(_ name: String, _ kind: String, _ help: String, _ value: some BinaryInteger) {
      metric(name, kind, help, [("", Double(value))])
    }
    one("running", "gauge", "Accounts that are being backed up.", values.running)
    metric(
      "backups_total", "counter", "Backups that have ended, by their results.",
      [("complete", values.complete), ("incomplete", values.incomplete), ("failed", values.failed)]
        .map { ("{outcome=\"\($0)\"}", Double($1)) })
    one(
      "leases_lost_total", "counter", "Accounts given up because the lease was not renewed.",
      values.lost)
    one("added_bytes_total", "counter", "Bytes added to archives.", values.added)
    one("lists_total", "counter", "Hosts whose accounts were listed.", values.listed)
    one("events_total", "counter", "Events of firehoses.", values.events)
    let servers = values.requests.sorted { $0.key < $1.key }
    func each(_ name: String, _ kind: String, _ help: String, _ value: KeyPath<FleetHost, Double>) {
      metric(name, kind, help, queues.map { ("{host=\"\($0.host)\"}", $0[keyPath: value]) })
    }
    let total = { (name: String, help: String, value: (Int, Int, Double) -> Double) in
      metric(
        name, "counter", help,
        servers.map { ("{host=\"\($0.key)\"}", value($0.value.0, $0.value.1, $0.value.2)) })
    }
    total("requests_total", "Requests by server.") { count, _, _ in Double(count) }
    total("requests_failed_total", "Requests that failed, by server.") { _, failed, _ in
      Double(failed)
    }
    total("request_seconds_total", "Seconds that requests took, by server.") { $2 }
    each("queue", "gauge", "Accounts that are due, by host; 10001 for more.", \.due)
    each("host_running", "gauge", "Accounts of a host that are being backed up.", \.running)
    each("host_wait_seconds", "gauge", "Seconds until a host is asked again.", \.waitSeconds)
    each("host_alarm", "gauge", "Whether the alarm of a host is raised.", \.alarm)
    return text
  }
}
