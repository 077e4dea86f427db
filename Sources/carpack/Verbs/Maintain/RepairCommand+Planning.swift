internal import Archive
internal import Copying
internal import Files
internal import Reports
internal import SystemPackage
internal import Terminal
internal import Verification

/// `carpack repair --dry-run`: repairs a copy in memory, and says what that comes to.
extension RepairCommand {
  /// Says what a repair would do, and what the archive would be afterwards.
  func plan(_ file: String) throws {
    if let moved = try moved(file) { return try moved() }
    let copies = try copies(of: file)
    let sources = copies.map(\.reader)
    let path = FilePath(file)
    let count = Int(clamping: FileStorage.size(of: path) ?? 0)
    // What other archives have may be written behind it.
    let room = sources.reduce(max(PatchedFile.room, count / 4)) {
      $0 + Int(clamping: $1.fileSize)
    }
    let patched = try PatchedFile(path, count: count, room: room)
    let healed = try patched.map().layer?.heal(patched) ?? 0
    let report = try ArchiveReader.checkingFetched(sources) {
      try repair(patched.archive(), of: file, from: copies)
    }
    Console.endProgress()
    if json {
      Self.report.print((file, true, healed, report, nil))
    } else {
      printText(report, moved: healed, file, isChanged: false)
    }
    Console.say(lost: report.lost, of: file)
    if report.isWholeApart {
      common.say("\(file): would be written anew, because every snapshot that is left is whole")
      throw ExitStatus.incomplete
    }
    if let damage = report.damage {
      Failure("\(file): \(damage)", hint: nil, status: .damaged).say()
    }
    try end(with: report.verification, of: file, report.lost.isEmpty ? .success : .incomplete)
  }

  /// Says what would be healed of an archive into which bytes were inserted, or from which some
  /// were lost; nil for any other.
  private func moved(_ file: String) throws -> (() throws -> Void)? {
    guard let alignment = try ParityAlignment(MappedFile(FilePath(file))),
      alignment.report.isHealable, let reader = try healed(file)?.readable.first?.reader
    else { return nil }
    return { try end(with: verifier.verify(reader, .full), of: file) }
  }
}
