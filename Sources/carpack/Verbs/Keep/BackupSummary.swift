internal import ATProtocol
internal import Archive
internal import IPLD
internal import Live
internal import Reports
internal import Snapshots
internal import Terminal

/// The result of a backup, for people.
extension BackupReport {
  /// Prints it: one line, or everything that is known.
  func printSummary(isShort: Bool) {
    let title = title(isShort: isShort)
    let accepted = snapshot.blobs.acceptance.map { ", \($0)" } ?? ""
    let verdict =
      switch outcome {
      case .upToDate: "up to date\(accepted)"
      case .recent where snapshot.isSettled: "recent, skipped\(accepted)"
      case .recent: "recent, skipped; \(Console.yellow("incomplete"))\(accepted)"
      case .complete:
        accepted.isEmpty ? Console.green("complete") : "nothing else is missing\(accepted)"
      case .incomplete:
        "\(Console.yellow("incomplete")), \(whatIsLacking(isShort: isShort))\(accepted)"
      }
    if isShort {
      let growth = bytesAdded > 0 ? ", \(Quantity.bytes(bytesAdded)) added" : ""
      let flaw = damage.isNone ? "" : ", \(Console.red("\(damage.text) damaged"))"
      Console.print("\(title): \(verdict)\(flaw)\(growth)")
    } else {
      Console.print("\(title): \(verdict)")
      for line in content(accepted) + findings { Console.print("  \(line)") }
    }
    snapshot.standing.sayDoubts(named: title)
  }

  /// Prints what is wrong, if anything is: all that a quiet backup prints.
  func sayTrouble(isShort: Bool) {
    let title = title(isShort: isShort)
    snapshot.standing.sayDoubts(named: title)
    if !snapshot.isSettled || lacksPrivateData {
      let hint =
        snapshot.blobs.unaccepted > 0
        ? "; \"carpack missing \(name.shellWord)\" names what is missing" : ""
      Console.say(.incomplete, "\(title): \(whatIsLacking(isShort: true))\(hint)")
    }
    if !damage.isNone {
      Console.say(
        .damaged,
        "\(title): \(damage.text); \"carpack verify \(name.shellWord)\" says what is lost")
    }
  }

  private func title(isShort: Bool) -> String {
    isShort ? archiveTitle(name, of: snapshot.handle, snapshot.did) : name
  }

  /// Whose it is, what is in it, and what was added.
  private func content(_ accepted: String) -> [String] {
    let blobs = snapshot.blobs
    let account = snapshot.handle.map { "\($0.text) (\(snapshot.did))" } ?? snapshot.did.text
    let revision = snapshot.rev.map { " at \($0.text)" } ?? ""
    let extras =
      blobs.extras > 0
      ? "; \(Quantity.count(blobs.extras, "extra")) (\(Quantity.bytes(blobs.extrasBytes)))" : ""
    var lines = [
      "\(account)\(revision), from \(snapshot.pds ?? "an unknown server")",
      "\(Quantity.count(snapshot.counts.records, "record")); blobs: \(Quantity.grouped(blobs.referenced)) referenced, \(blobs.listing), \(Quantity.grouped(blobs.held)) held (\(Quantity.bytes(blobs.heldBytes))), \(Quantity.grouped(blobs.unaccepted)) missing\(accepted)\(extras)",
    ]
    if bytesAdded > 0 || outcome == .complete {
      let repository =
        isRepositoryUnchanged
        ? "the repository unchanged"
        : snapshot.fetched?.since == nil ? "the whole repository" : "the changes of the repository"
      let new = blobs.new ?? 0
      let newBlobs =
        new > 0
        ? " and \(Quantity.count(new, "new blob")) (\(Quantity.bytes(blobs.newBytes ?? 0)))" : ""
      lines.append(
        "\(Quantity.bytes(bytesAdded)) added in \(Quantity.duration(seconds: Double(milliseconds) / 1000)), \(repository)\(newBlobs)"
      )
    }
    if let context, context.people + context.posts + context.thumbnails > 0 {
      lines.append(
        "context: \(Quantity.count(context.people, "person", "people")), \(Quantity.count(context.posts, "post")) and \(Quantity.count(context.thumbnails, "thumbnail")) of others are new"
      )
    }
    return lines
  }

  /// What is odd about it, and what to do.
  private var findings: [String] {
    let blobs = snapshot.blobs
    let standing = snapshot.standing
    var lines = identityChanges
    if standing.doubts.contains(.unsigned) {
      lines.append("unsigned: no key of the account was known to check the commit with")
    }
    for doubt in Standing.Doubt.allCases where standing.accepted.contains(doubt) {
      lines.append("accepted: the account \(doubt)")
    }
    if let sentence = snapshot.unreadable.sentence { lines.append(sentence) }
    if isHealed { lines.append("damaged sections were written again") }
    if !damage.isNone {
      lines.append("\(Console.red("damaged:")) \(damage.text) (\(damage.advice))")
    }
    if let fault = blobs.listFault { lines.append("\(fault.sentence); the next backup asks again") }
    if lacksPrivateData {
      lines.append("private data is incomplete; the next backup with --private asks again")
    }
    if let context, !context.failures.isEmpty {
      lines.append("the context is incomplete; the next backup with --context asks again")
    }
    let missing = missing.byReason
    for (reason, count) in missing {
      lines.append("missing: \(Quantity.grouped(count)), \(reason.sentence)")
    }
    if blobs.unaccepted > 0 {
      lines.append("\"carpack missing \(name.shellWord)\" names them, \"carpack fill\" tries again")
    }
    if lacksRoom { lines.append("make room on the disk, then run the same command again") }
    if missing.contains(where: \.reason.isLasting) {
      lines.append(
        "\"carpack missing --accept all \(Elsewhere.fileWord(name))\" notes those that are lost for good, and backups count as complete again"
      )
    }
    if let head = generation.head { lines.append("archive head \(head.cid)") }
    if snapshot.isSettled, standing.grave.isEmpty, !lacksPrivateData, blobs.accepted == 0,
      damage.isNone
    {
      lines.append(Quantity.allSafe(records: snapshot.counts.records, blobs: blobs.referenced))
    }
    return lines
  }

  /// What is incomplete, and in short why.
  private func whatIsLacking(isShort: Bool) -> String {
    let blobs = snapshot.blobs
    guard blobs.unaccepted == 0 else {
      let why = isShort ? missing.byReason.map { ", \($0.reason.sentence)" }.joined() : ""
      return "\(Quantity.count(blobs.unaccepted, "blob")) missing\(why)"
    }
    if blobs.listFault != nil { return "the list of blobs" }
    if snapshot.standing.doubts.contains(.behind) {
      return "the newest commit is missing (the server sent an older one)"
    }
    return snapshot.unreadable.mayHideBlobs ? "records that cannot be read" : "private data"
  }
}

extension Standing {
  /// Prints the evidence against the account, and how to accept it.
  func sayDoubts(named name: String) {
    for doubt in grave {
      let option = doubt == .handle ? "--accept handle" : "--accept rollback"
      Console.say(
        .notGenuine, "\(name): the account \(doubt); if you know why, \(option) accepts it")
    }
  }
}

extension BackupReport {
  /// Whether the disk had no room for a blob.
  private var lacksRoom: Bool { missing.byReason.contains { $0.reason == .noRoom } }

  /// The exit status that it leads to.
  var status: ExitStatus {
    let lacks: ExitStatus =
      if lacksRoom {
        .ioError
      } else if !snapshot.isSettled {
        // A list that broke off and may come next time is worth another run.
        snapshot.blobs.listFault?.isTransient == true ? .temporary : .incomplete
      } else {
        lacksPrivateData ? .incomplete : .success
      }
    return .worst(
      lacks, snapshot.standing.grave.isEmpty ? .success : .notGenuine,
      damage.isNone ? .success : .damaged, isBehindOlderCopy ? .incomplete : .success)
  }
}

extension BackupTally {
  /// The counts in words; nil if no account has ended.
  func sentence(after elapsed: Duration) -> String? {
    guard accountCount + skippedCount + malformedCount > 0 else { return nil }
    let parts = [
      (self[.complete], "complete"), (self[.upToDate], "up to date"),
      (self[.recent] - recentIncompleteCount, "recent"),
      (recentIncompleteCount, "recent and incomplete"), (self[.incomplete], "incomplete"),
      (plannedCount, "planned"), (failedCount, "failed"), (skippedCount, "skipped"),
      (malformedCount, "malformed in the list"),
    ]
    let words = parts.filter { $0.0 > 0 }.map { "\(Quantity.grouped($0.0)) \($0.1)" }
    let counts = "\(Quantity.count(accountCount, "account")): \(words.joined(separator: ", "))"
    // A dry run adds nothing.
    guard plannedCount == 0 else { return counts }
    let seconds = Double(elapsed.components.seconds)
    return
      "\(counts); \(Quantity.bytes(bytesAdded)) added in \(Quantity.duration(seconds: seconds))"
  }
}

/// The name of an archive, one of several in a list, with the account in front of it unless the
/// archive is named after that: several accounts may go into one archive.
private func archiveTitle(_ name: String, of handle: Handle?, _ did: DID) -> String {
  let isNamedAfter = name.contains(did.text) || handle.map { name.contains($0.text) } ?? false
  return isNamedAfter ? name : "\(handle?.text ?? did.text): \(name)"
}

/// What a backup would do, as a person reads it.
extension BackupPlan {
  /// Prints it: one line, or everything that is known.
  func print(isShort: Bool) {
    let rest = repository == .recent ? nil : "blobs: \(blobsInWords)"
    guard !isShort else {
      return Console.print(
        "\(archiveTitle(name, of: handle, did)): repository: \(repositoryInWords)\(rest.map { "; \($0)" } ?? "")"
      )
    }
    let account = handle.map { "\($0) (\(did))" } ?? did.text
    let isCurrent = blobs.wanted == 0 && [.unchanged, .recent].contains(repository)
    let found = isCurrent ? "nothing to fetch" : exists ? "exists" : "would be new"
    Console.print("\(name): \(found)")
    Console.print("  \(account)\(server.map { ", from \($0)" } ?? "")")
    Console.print("  repository: \(repositoryInWords)")
    if let rest { Console.print("  \(rest)") }
    if let appView { Console.print("  context: new items are requested from \(appView)") }
  }

  private var repositoryInWords: String {
    let held = heldRevision.map { " (\($0))" } ?? ""
    return switch repository {
    case .first: "all of it; its size is known once it is fetched"
    case .unchanged: "unchanged\(held)"
    case .changed:
      "what changed\(heldRevision.map { " since \($0)" } ?? "")\(newestRevision.map { ", to \($0)" } ?? "")"
    case .unknown: "the server does not say whether it changed\(held)"
    case .recent: "recent, no request is made\(held)"
    }
  }

  private var blobsInWords: String {
    let listed = blobs.listed.map { "\(Quantity.grouped($0)) listed, " } ?? ""
    let text = "\(listed)\(Quantity.grouped(blobs.wanted)) to fetch"
    if blobs.wanted == 0 { return text }
    if blobs.wanted == blobs.unsized { return text + ", of unknown size" }
    let unsized =
      blobs.unsized == 0 ? "" : " and \(Quantity.grouped(blobs.unsized)) of unknown size"
    return "\(text), \(Quantity.bytes(blobs.declaredBytes)) declared\(unsized)"
  }
}

extension Snapshot.BlobCounts {
  /// How many blobs the server lists, in words.
  fileprivate var listing: String {
    if let listed { return "\(Quantity.grouped(listed)) listed" }
    return listFault == nil ? "server list not requested" : "server list unknown"
  }

  /// How many losses were accepted, in words; nil if none was.
  var acceptance: String? {
    guard accepted > 0 else { return nil }
    return "\(Quantity.count(accepted, "loss was", "losses were")) accepted"
  }
}

extension StoredDamage {
  /// What is damaged, in a word or two.
  var text: String {
    sectionCount > 0
      ? Quantity.count(sectionCount, "section")
      : isSealDamaged
        ? "bytes that cannot be decrypted"
        : isElsewhere ? "an index, a footer or the header" : "its end, and snapshots in it"
  }

  /// Which command helps.
  var advice: String {
    sectionCount > 0
      ? "\"carpack verify\" says what is lost"
      : isSealDamaged
        ? "they stay; \"carpack repair --from COPY\" writes again what a copy has"
        : isElsewhere
          ? "no content is lost; \"carpack repair\" rebuilds it"
          : "put back a copy, or \"carpack repair\" gives them up"
  }
}
