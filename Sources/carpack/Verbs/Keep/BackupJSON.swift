internal import ATProtocol
internal import Archive
internal import IPLD
internal import Live
internal import Snapshots
internal import Terminal

/// Backups as events in JSON, one object a line.
enum BackupJSON {
  /// Prints an event at once, if results are JSON, and keeps it for a hook.
  static func print(_ name: String, _ fields: (inout JSONWriter) -> Void) {
    if name != "progress" {
      EventRecord.record(.backup) {
        $0.field("event", name)
        fields(&$0)
      }
    }
    guard Console.isJSON else { return }
    var json = JSONWriter.ofResults
    json.begin(.backup)
    json.field("event", name)
    fields(&json)
    Console.finish(&json)
    Console.flush()
  }

  /// Prints what happens to an account.
  static func print(_ event: BackupEvent, of account: String) {
    switch event {
    case .resolved(let did, let handle, let server):
      print("resolved") {
        $0.field("account", account)
        $0.field("did", did.text)
        $0.field("handle", handle?.text)
        $0.field("pds", server)
      }
    case .repository(let records, let bytes, let isIncremental):
      print("repository") {
        $0.field("account", account)
        $0.field("records", records)
        $0.field("bytes", bytes)
        $0.field("incremental", isIncremental)
      }
    case .blobs(let referenced, let listed, let wanted):
      print("blobs") {
        $0.field("account", account)
        $0.field("referenced", referenced)
        $0.field("listed", listed)
        $0.field("wanted", wanted)
      }
    case .progress(let progress):
      print("progress") {
        $0.field("account", account)
        $0.field("stage", progress.stage.rawValue)
        $0.field("bytes", progress.bytes)
        if progress.stage == .blobs {
          $0.field("done", progress.blobsDone)
          $0.field("total", progress.blobsTotal)
          $0.field("failed", progress.blobsFailed)
        }
      }
    case .missing(let entry, let answers):
      print("missing") {
        $0.field("account", account)
        write(entry, to: &$0)
        write(answers, to: &$0)
      }
    case .arrived(let cid, let server, let answers):
      print("arrived") {
        $0.field("account", account)
        $0.field("cid", "\(cid)")
        $0.field("from", server)
        write(answers, to: &$0)
      }
    case .warning(let text):
      print("warning") {
        $0.field("account", account)
        $0.field("message", text)
      }
    }
  }

  /// Writes what servers answered.
  private static func write(_ answers: [ServerAnswer], to json: inout JSONWriter) {
    json.beginArray("answers")
    for answer in answers {
      json.beginObject()
      json.field("server", answer.server)
      json.field("reason", answer.failure.reason.rawValue)
      json.field("why", answer.sentence)
      json.field("status", answer.failure.status)
      json.field("wantsLogin", answer.wantsLogin)
      json.endObject()
    }
    json.endArray()
  }

  /// Writes the fields of an entry of the ledger.
  static func write(_ entry: BlobLedger.Missing, to json: inout JSONWriter) {
    json.field("cid", "\(entry.cid)")
    json.field("reason", entry.reason.rawValue)
    json.field("why", entry.reason.sentence)
    json.field("status", entry.status)
    json.field("size", entry.size)
    json.field("referenced", entry.isReferenced)
    json.field("firstTried", entry.firstTried)
    json.field("lastTried", entry.lastTried)
    if let accepted = entry.accepted { write(accepted, to: &json) }
  }

  /// Writes that a loss is accepted.
  static func write(_ accepted: BlobLedger.Acceptance, to json: inout JSONWriter) {
    json.beginObject("accepted")
    json.field("date", accepted.date)
    json.field("reason", accepted.reason)
    json.endObject()
  }

  /// Prints what came of an account.
  static func print(_ report: BackupReport, of account: String) {
    print("finished") {
      $0.field("account", account)
      $0.field("file", "\(report.name)")
      $0.field("outcome", report.outcome.rawValue)
      $0.field("bytesAdded", report.bytesAdded)
      $0.field("bytes", report.generation.committedLength)
      $0.field("healed", report.isHealed)
      report.damage.writeFields(to: &$0)
      $0.field("lacksPrivateData", report.lacksPrivateData)
      $0.field("milliseconds", report.milliseconds)
      $0.field("archiveHead", report.generation.head.map { "\($0.cid)" })
      report.snapshot.writeFields(to: &$0)
      $0.key("missing")
      $0.beginArray()
      for entry in report.missing {
        $0.beginObject()
        write(entry, to: &$0)
        $0.endObject()
      }
      $0.endArray()
      $0.beginArray("identityChanges")
      for change in report.identityChanges { $0.string(change) }
      $0.endArray()
      $0.key("warnings")
      $0.beginArray()
      for warning in report.warnings { $0.string(warning) }
      $0.endArray()
    }
  }

  /// Prints why an account was not backed up.
  static func print(_ failure: Failure, of account: String) {
    print("failed") {
      $0.field("account", account)
      $0.field("error", failure.message)
      $0.field("exitStatus", Int(failure.status.number))
    }
  }
}
