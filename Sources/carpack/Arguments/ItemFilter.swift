internal import ATProtocol
internal import ArgumentParser
internal import Extraction
internal import Files
internal import Terminal

/// Which records a verb is about.
struct RecordFilterOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Only records of this collection, and blobs that they refer to; \"*\" stands for any characters; may be repeated.",
      valueName: "nsid"))
  var collection: [String] = []

  @Option(
    help: ArgumentHelp(
      "Only records made at this time or later: 2025, 2025-03, 2025-03-22, 2025-03-22T10:00, or 30d for the last thirty days; records without a date are left out.",
      valueName: "time"))
  var since: Moment?

  @Option(
    help: ArgumentHelp(
      "Only records made at this time or earlier; records without a date are left out.",
      valueName: "time"))
  var until: Moment?
}

extension Moment: ExpressibleByArgument {
  /// A date or time as a person writes it: `2026`, `2026-11`, `2026-11-21`, `2026-11-21T10:00`; or
  /// how long ago.
  init?(argument: String) {
    let ago = Age(argument: argument).flatMap { age in
      Moment(Host.now)?.earlier(by: age.seconds)
    }
    guard let moment = ago ?? Moment(written: argument) else { return nil }
    self = moment
  }
}

/// Which blobs a verb is about.
struct BlobFilterOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Only blobs of this media type, such as image/*.", valueName: "type"))
  var type: String?

  @Option(help: ArgumentHelp("Only items larger than this: 500kB, 2MB.", valueName: "size"))
  var larger: ByteSize?
}

extension ItemFilter {
  /// A filter by selectors, of which one has to fit, and options, which all have to.
  ///
  /// - Throws: `BackupError` for an invalid selector; ``Failure`` for an invalid collection.
  init(
    _ selectors: [String], _ options: RecordFilterOptions, _ blobOptions: BlobFilterOptions? = nil
  ) throws {
    self.init(
      try selectors.map { try Selector($0) },
      collections: try options.collection.map { text in
        guard let pattern = PathPattern("\(text)/") else {
          throw Failure("--collection: \"\(text)\" is not a collection", status: .usage)
        }
        return pattern
      },
      type: blobOptions?.type, largerThan: blobOptions?.larger.map { UInt64($0.bytes) },
      since: options.since, until: options.until)
  }
}
