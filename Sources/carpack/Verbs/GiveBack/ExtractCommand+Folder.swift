internal import Extraction
internal import Files
internal import IPLD
internal import Reports
internal import Snapshots
internal import Terminal

/// Where things are extracted to, and how.
extension ExtractCommand {
  /// The folder to write into.
  ///
  /// - Throws: ``Failure`` if there is no name to give it.
  func folder(for archive: String) throws -> String {
    if let directory { return directory }
    guard archive != "-" else {
      throw Failure(
        "an archive from standard input has no name for a folder", hint: "name one with -d",
        status: .usage)
    }
    for ending in [".car.zst", ".zst"] where archive.hasSuffix(ending) {
      let name = String(archive.dropLast(ending.count))
      if !name.isEmpty, !name.hasSuffix("/") { return name }
    }
    return archive + ".extracted"
  }

  /// Extracts snapshots into a folder, each account into a folder of its own, unless a file is in
  /// the way of any; when interrupted, leaves only complete files.
  ///
  /// - Throws: ``ExitStatus`` of the signal that interrupted it, and what the extraction throws.
  func extract(
    _ selection: Selection, of snapshots: [ArchivedSnapshot], into directory: String,
    observer: @escaping Progress.Observer
  ) throws -> [(account: String, report: SnapshotExtractor.Report)] {
    let folder = try OutputFolder(directory, overwriting: overwrite) {
      Interruption.received != nil
    }
    _ = try Interruption.beginNotifying()
    defer { Interruption.endNotifying() }
    do {
      var options = ExtractionOptions()
      (options.isReadable, options.setsTimes) = (names == .readable, !noTimes)
      options.isDeleting = delete
      // What waits for a remote archive ends then, too.
      return try Stopping.passing(Stopping { Interruption.received != nil }) {
        try SnapshotExtractor.extract(
          selection, of: snapshots, into: folder, options: options, observer: observer)
      }
    } catch is CancellationError {
      throw sayInterrupted(folder.tally, in: directory)
    }
  }

  private func sayInterrupted(_ tally: OutputFolder.Tally, in directory: String) -> ExitStatus {
    Console.say(
      .interrupted,
      "\(directory) has \(Quantity.count(tally.written, "new file")), each complete; run the same command again to go on"
    )
    return Interruption.received ?? .interrupted
  }
}
