internal import Synchronization

/// What a worker has done since it began, as numbers.
package final class FleetCounters: Sendable {
  /// The numbers.
  package struct Values: Equatable, Sendable {
    /// Accounts that are being backed up.
    package var running = 0
    /// Backups that have come to an end, whatever came of them.
    package var ended = 0
    /// By what came of them.
    package var complete = 0, incomplete = 0, failed = 0
    /// Leases that ran out while the account was worked on.
    package var lost = 0
    /// Bytes that came to archives.
    package var added: UInt64 = 0
    /// Hosts whose accounts were listed.
    package var listed = 0
    /// Events of firehoses.
    package var events = 0
  }

  private let numbers = Mutex(Values())

  /// Nothing yet.
  package init() {}

  /// The numbers as they are now.
  package var values: Values { numbers.withLock { $0 } }

  func change(_ body: (inout Values) -> Void) { numbers.withLock { body(&$0) } }

  /// The numbers as Prometheus takes them.
  ///
  /// Source: [Prometheus' text
  /// format](https://prometheus.io/docs/instrumenting/exposition_formats/).
  package var text: String {
    let values = values
    var text = ""
    func metric(_ name: String, _ kind: String, _ help: String, _ samples: [(String, UInt64)]) {
      text += "# HELP carpack_fleet_\(name) \(help)\n# TYPE carpack_fleet_\(name) \(kind)\n"
      for (labels, value) in samples { text += "carpack_fleet_\(name)\(labels) \(value)\n" }
    }
    metric("running", "gauge", "Accounts that are being backed up.", [("", UInt64(values.running))])
    metric(
      "backups_total", "counter", "Backups that have come to an end, by what came of them.",
      [
        ("{outcome=\"complete\"}", UInt64(values.complete)),
        ("{outcome=\"incomplete\"}", UInt64(values.incomplete)),
        ("{outcome=\"failed\"}", UInt64(values.failed)),
      ])
    metric(
      "leases_lost_total", "counter", "Leases that ran out while the account was worked on.",
      [("", UInt64(values.lost))])
    metric("added_bytes_total", "counter", "Bytes that came to archives.", [("", values.added)])
    metric(
      "lists_total", "counter", "Hosts whose accounts were listed.", [("", UInt64(values.listed))])
    metric("events_total", "counter", "Events of firehoses.", [("", UInt64(values.events))])
    return text
  }
}
