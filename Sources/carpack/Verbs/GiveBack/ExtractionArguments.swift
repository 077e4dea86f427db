internal import ArgumentParser
internal import Extraction
internal import Files
internal import IPLD
internal import Reports
internal import Snapshots
internal import Terminal

/// What blobs are called, as it is asked for.
enum BlobNames: String, CaseIterable, ExpressibleByArgument {
  case cid, readable
}

/// Where things are extracted to, and how.
struct ExtractionArguments: ConfigurableOptions {
  static let settings = [
    Setting(name: "names", kind: .text),
    Setting(name: "no-times", kind: .flag),
  ]

  @Option(
    name: [.customShort("d"), .customLong("directory")],
    help: ArgumentHelp(
      "The folder to write into; without it, one beside the archive that has its name. With --car, \"-\" writes the CAR to standard output.",
      valueName: "dir"), completion: .directory)
  var directory: String?

  @Option(
    help: ArgumentHelp(
      "What blobs are called: by their CIDs, or readable, 2025-03-22_3lkxag2q_1_plan-of-forty-beds.svg, in names that Windows and exFAT take as well.",
      valueName: "cid|readable"))
  var names = BlobNames.cid

  @Flag(help: "Leave out the times of the records, which files get as their own.")
  var noTimes = false

  @Flag(
    help:
      "Remove files that the snapshot no longer has, if an earlier extraction wrote them and nobody has changed them since."
  )
  var delete = false

  @Flag(help: "Replace files that differ, also those that carpack did not write.")
  var overwrite = false

  var options: ExtractionOptions {
    var options = ExtractionOptions()
    options.isReadable = names == .readable
    options.setsTimes = !noTimes
    options.isDeleting = delete
    return options
  }

  /// The folder to write into.
  ///
  /// - Throws: ``Failure`` if there is no name to give it.
  func folder(for archive: String) throws -> String {
    if let directory { return directory }
    guard archive != "-" else {
      throw Failure(
        "what comes from standard input has no name for a folder", hint: "name one with -d",
        status: .usage)
    }
    for ending in [".car.zst", ".zst"] where archive.hasSuffix(ending) {
      let name = String(archive.dropLast(ending.count))
      if !name.isEmpty, !name.hasSuffix("/") { return name }
    }
    return archive + ".extracted"
  }
}

extension ExtractionArguments {
  /// Extracts snapshots into a folder, each account into one of its own, unless something is in the
  /// way of any; ends well when it is interrupted.
  ///
  /// - Throws: ``ExitStatus`` of the signal that interrupted it, and what the extraction throws.
  func extract(
    _ selection: Selection, of snapshots: [ArchivedSnapshot], into directory: String,
    observer: @escaping Progress.Observer
  ) throws -> SnapshotExtractor.Report {
    let folder = try OutputFolder(directory, overwriting: overwrite) {
      Interruption.received != nil
    }
    func observe(_ progress: Progress) {
      // Between files the folder itself stops; while the archive is read, nothing is half written.
      if progress.stage == "reading", Interruption.received != nil {
        sayInterrupted(folder.tally, in: directory).leave()
      }
      observer(progress)
    }
    _ = try Interruption.beginNotifying()
    defer { Interruption.endNotifying() }
    do {
      // What waits for an archive elsewhere ends then, too.
      return try Stopping.passing(Stopping { Interruption.received != nil }) {
        try SnapshotExtractor.extract(
          selection, of: snapshots, into: folder, options: options, observer: observe)
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
