import Synchronization

/// Counters, in the text format of Prometheus.
final class Metrics: Sendable {
  private struct Counts {
    var requests: [String: [Int: UInt64]] = [:]
    var seconds: Double = 0
    var bytes: UInt64 = 0
  }

  private let counts = Mutex(Counts())

  /// Counts a request.
  ///
  /// - Parameters:
  ///   - endpoint: what was requested; of a small number of names.
  ///   - status: of the answer.
  ///   - bytes: how many the body of the answer has.
  ///   - seconds: how long it took to make the answer, without sending it.
  func count(_ endpoint: String, _ status: Int, bytes: Int, seconds: Double) {
    counts.withLock { counts in
      counts.requests[endpoint, default: [:]][status, default: 0] += 1
      counts.seconds += seconds
      counts.bytes &+= UInt64(max(0, bytes))
    }
  }

  /// The text for `/metrics`.
  func text(archives: Int, accounts: Int, jobs: WorkThreads.Counts) -> String {
    let counts = counts.withLock { $0 }
    var lines = [
      "# HELP carpack_requests_total Requests that were answered.",
      "# TYPE carpack_requests_total counter",
    ]
    for (endpoint, statuses) in counts.requests.sorted(by: { $0.key < $1.key }) {
      for (status, count) in statuses.sorted(by: { $0.key < $1.key }) {
        lines.append(
          "carpack_requests_total{endpoint=\"\(endpoint)\",status=\"\(status)\"} \(count)")
      }
    }
    func add(_ name: String, _ type: String, _ help: String, _ value: String) {
      lines += ["# HELP \(name) \(help)", "# TYPE \(name) \(type)", "\(name) \(value)"]
    }
    add(
      "carpack_response_bytes_total", "counter", "Bytes of response bodies.",
      "\(counts.bytes)")
    add(
      "carpack_answer_seconds_total", "counter", "Time spent preparing responses, without sending.",
      "\(counts.seconds)")
    add("carpack_archives", "gauge", "Archives that are served.", "\(archives)")
    add("carpack_accounts", "gauge", "Accounts that are served.", "\(accounts)")
    add(
      "carpack_jobs_running", "gauge", "Repositories being laid out, blobs being hashed.",
      "\(jobs.running)")
    add("carpack_jobs_waiting", "gauge", "Such jobs that are waiting.", "\(jobs.waiting)")
    add(
      "carpack_jobs_refused_total", "counter", "Such jobs that were refused with 503.",
      "\(jobs.refused)")
    add(
      "carpack_jobs_abandoned_total", "counter",
      "Such jobs whose clients left before the job began.",
      "\(jobs.abandoned)")
    return lines.joined(separator: "\n") + "\n"
  }
}
