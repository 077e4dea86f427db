internal import Files
internal import IPLD
package import Reports
internal import Synchronization
internal import Terminal

/// The events of a backup, kept for a hook as `--json` prints them, except for the progress.
///
/// They lie in a file without a name: a backup of many accounts has more of them than belongs in
/// memory.
package final class EventRecord: Sendable {
  private let state: Mutex<(file: TemporaryFile?, fault: String?)>

  /// The record that events are written to, if there is one.
  private static let recording = Mutex<EventRecord?>(nil)

  /// Starts recording.
  static func begin() -> EventRecord {
    let record = EventRecord()
    recording.withLock { $0 = record }
    return record
  }

  private init() {
    do {
      state = Mutex((try TemporaryFile(), nil))
    } catch {
      // A backup does not fail because there is no room for a report of it.
      state = Mutex((nil, "\(error)"))
    }
  }

  /// Keeps an object of the output.
  package static func record<Subject>(_ report: Report<Subject>, _ subject: Subject) {
    guard let record = recording.withLock({ $0 }) else { return }
    let bytes = report.line(subject)
    record.state.withLock { state in
      guard state.fault == nil else { return }
      do {
        try state.file?.write(bytes.span)
      } catch {
        state.fault = "\(error)"
      }
    }
  }

  /// A descriptor to read all of it from, valid as long as this exists; -1 if there is
  /// none.
  func open() -> CInt {
    Self.recording.withLock { $0 = nil }
    return state.withLock { state in
      var descriptor: CInt = -1
      do {
        descriptor = try state.file?.beginReading() ?? -1
      } catch {
        state.fault = state.fault ?? "\(error)"
      }
      if let fault = state.fault {
        Console.say(.warning, "the report for the hook is incomplete: \(fault)")
      }
      return descriptor
    }
  }
}
