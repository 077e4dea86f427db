import Archive
import ArchiveTestSupport
import Failures
import HTTP
import SystemPackage
import Terminal
import TestSupport
import Verification

@testable import Remote

/// An archive that lies elsewhere.
struct MemoryServer: RangeReader {
  let bytes: [UInt8]
  var name: String { "the archive elsewhere" }
  var isPutWhole: Bool { false }

  func get<Value>(
    _ range: String?, tag: String?, receive: (HTTPResponse) async throws -> Value
  ) async throws -> Value {
    let ends = (range?.dropFirst("bytes=".count) ?? "0-")
      .split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
    let count = bytes.count
    let first = ends[0] ?? max(0, count - (ends[1] ?? 0))
    let last = ends[0] == nil ? count - 1 : min(ends[1] ?? count - 1, count - 1)
    let fields = [(name: "content-range", value: "bytes \(first)-\(last)/\(count)")]
    let body = HTTPBody([Array(bytes[first...last])])
    return try await receive(HTTPResponse(status: 206, fields: fields, url: name, body: body))
  }
}

/// Local copies are brought up to date.
extension SequenceArchive {
  /// Pulls the archive over an older piece of it or over its own beginning, or the copy over the
  /// archive.
  mutating func pull() throws {
    let choice = Int(random.next() % 3)
    let (local, remote) = choice == 0 ? (file, copy) : (older, file)
    guard !remote.isEmpty, !local.isEmpty else { return }
    let words = ["pull of the copy", "pull over the older piece", "pull over its beginning"][choice]
    var left = local
    let isState = remote.starts(with: local)
    if choice == 2 {
      left = Array(remote.prefix(Int(random.next() % UInt64(remote.count))))
      steps.append("of \(remote.count) bytes \(left.count) are here")
    } else if isState, random.next() % 2 == 0, let torn = try interruptPull(of: remote, over: local)
    {
      left = torn
      steps.append("\(words), interrupted")
      try SequenceFindings(local, states).require(of: left)
    }
    try Torture.keep(left, "pulled.car.zst")
    try Torture.keep(remote, "remote.car.zst")
    let path = FilePath(try folder.write("a.car.zst", left))
    let isWhole = try !isDamaged(remote)
    do {
      let report = try ArchivePull(from: MemoryServer(bytes: remote), to: path, replaces: false)
        .run()
      file = try folder.read("a.car.zst")
      steps.append("\(words): \(report.outcome)")
      switch report.outcome {
      case .unchanged, .ahead: try requirePulled(file == left, words)
      case .appended: try requirePulled(file.count == remote.count, words)
      case .created, .replaced, .healed:
        try requirePulled(file == remote, words)
        let found = try SequenceFindings(left, states)
        try found.require(of: file)
      }
    } catch let error as Unexpected {
      throw error
    } catch {
      file = try folder.read("a.car.zst")
      steps.append("\(words): refused: \(error)")
      counts["refused", default: 0] += 1
      // What an interrupted pull had fetched may be given up, as long as it can be fetched again.
      let after = ForwardWalk(file)
      let elsewhere = ForwardWalk(remote)
      let isKept = ForwardWalk(left).bodies.keys.allSatisfy {
        after.bodies[$0] != nil || elsewhere.bodies[$0] != nil
      }
      try requirePulled(isKept, words)
      if isState || choice == 2, isWhole {
        throw Unexpected("(R) \(words) is refused, though it is a beginning of it: \(error)")
      }
      try replace(path, by: remote, isWhole: isWhole, after: error)
    }
    if try verdict(of: file) != nil {
      try SequenceFindings.requireTruth(of: file, states, seams: seams)
    }
  }

  /// Does what the hint says, if that is to replace the file.
  private mutating func replace(
    _ path: FilePath, by remote: [UInt8], isWhole: Bool, after error: any Error
  ) throws {
    let hint = (error as? any Explained)?.explanation.hint ?? ""
    guard hint.contains("--replace"), random.next() % 2 == 0 else { return }
    do {
      let pull = ArchivePull(from: MemoryServer(bytes: remote), to: path, replaces: true)
      _ = try pull.run()
      file = try folder.read("a.car.zst")
      steps.append("pull --replace: done")
      try requirePulled(file == remote && isWhole, "pull --replace")
    } catch let error as Unexpected {
      throw error
    } catch {
      steps.append("pull --replace: refused: \(error)")
      if isWhole { throw Unexpected("(R) pull --replace of a whole archive is refused: \(error)") }
    }
  }

  /// What an interrupted pull leaves; nil if it is not interrupted.
  private mutating func interruptPull(of remote: [UInt8], over local: [UInt8]) throws -> [UInt8]? {
    guard let end = ForwardWalk(remote).footers.last, end.upperBound == remote.count else {
      return nil
    }
    let interruption = SequenceInterruption(&random)
    let storage = MemoryStorage(local, interruption.conditions(local.count))
    do {
      try storage.extend(to: UInt64(remote.count), footerLength: end.count) { offset, count in
        Array(remote[Int(offset)..<Int(offset) + count])
      }
    } catch {
      // What is refused for the sake of the archive was not interrupted.
      guard storage.failureCount > 0 else { return nil }
      counts["interrupted by \(interruption.kind.rawValue)", default: 0] += 1
    }
    return interruption.bytes(in: storage)
  }

  private func requirePulled(_ condition: Bool, _ words: String) throws {
    guard condition else { throw Unexpected("\(words) makes something else of the file") }
  }

  private func isDamaged(_ bytes: [UInt8]) throws -> Bool {
    do {
      let reader = try ArchiveReader(MappedFile(copying: bytes).archive())
      let report = try SnapshotVerifier().verify(reader, .full)
      return report.verdict == .damaged || report.archive.worst == .interruptedTail
    } catch is ArchiveError {
      return true
    }
  }
}
