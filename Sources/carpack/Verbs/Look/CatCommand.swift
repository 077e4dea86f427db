internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Extraction
internal import Files
internal import IPLD
internal import Reports
internal import Snapshots
internal import Terminal

/// `carpack cat`: one thing from an archive, or many records as JSON lines, to standard output.
struct CatCommand: ReportingCommand {
  static let page = ManualPage("cat", PackageResources.cat_txt)

  @Flag(help: "Print the bytes of a record as they are stored.")
  var raw = false

  @OptionGroup var archive: ArchiveArgument

  @Argument(
    help: ArgumentHelp(
      "A CID, collection/rkey, rkey, at:// URI or page; with --json also a collection, or a path with \"*\".",
      valueName: "selector"))
  var selector: String

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var terminal: TerminalOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    try require(!json || !raw, "--raw prints bytes, which are no JSON: leave out --json")
  }

  func run() throws { try archive.read(show) }

  private func show(_ opened: OpenedArchive) throws {
    var status = ExitStatus.success
    if case .cid(let cid) = try Selector(selector) {
      guard choice.at == nil, choice.accountOption.account == nil else {
        throw Failure(
          "a CID is looked up in the whole file", hint: "leave out --at and --account",
          status: .usage)
      }
      try show(cid, opened)
    } else {
      status = try showSelected(opened)
    }
    try ExitStatus.worst(status, opened.status).finish()
  }

  /// Prints what the selector means in the snapshot; returns what the lack of some of it means.
  private func showSelected(_ opened: OpenedArchive) throws -> ExitStatus {
    let snapshot = try opened.snapshot(choice, naming: [selector])
    let items = try opened.explainingAbsence(of: [selector], in: snapshot) {
      try Selection.items([selector], in: snapshot)
    }
    if json, case .record = items.first, try !Selector(selector).meansOneRecord {
      return try show(items, of: snapshot)
    }
    guard let item = items.first, items.count == 1 else {
      throw Failure(
        "\"\(selector)\" matches \(Quantity.count(items.count, "record"))",
        hint:
          "--json prints them, one per line; \"carpack ls\" lists them, \"carpack extract\" writes them to files",
        status: .usage)
    }
    switch item {
    case .cid(let cid): try show(cid, opened)
    case .record(let path):
      guard let block = try snapshot.record(path) else {
        throw try opened.absence(of: selector, in: snapshot)
      }
      try show(block.bytes.span, block.cid, (snapshot.snapshot.did, path))
    }
    return .success
  }

  /// Prints many records, in the order of their paths; returns what the lack of some of them means.
  private func show(_ items: [Selection.Item], of snapshot: ArchivedSnapshot) throws -> ExitStatus {
    let wanted = Set(items)
    var status = ExitStatus.success
    let blocks = SnapshotBlocks(
      snapshot, keepsRecords: true, observer: ProgressLine.observer(quiet: common.quiet))
    let contents = try blocks.contents { record, body in
      let path = String(decoding: record.key, as: UTF8.self)
      guard wanted.contains(.record(path)) else { return }
      if record.length == nil {
        status = .incomplete
        common.say(.missing, path)
      } else {
        try show(body, record.cid, (snapshot.snapshot.did, path))
      }
    }
    return .worst(status, contents.sayWhatIsLost(common))
  }

  /// Prints a blob, or a block as JSON.
  private func show(_ cid: CID, _ opened: OpenedArchive) throws {
    guard raw || cid.codec != .dagCBOR else {
      guard let body = try opened.reader.body(of: cid) else {
        throw try opened.absence(of: cid)
      }
      return try show(body.span, cid)
    }
    guard !json else {
      throw Failure(
        "\(cid) is a blob, and no JSON", hint: "leave out --json", status: .usage)
    }
    let isThere = try Console.writeContent(forcesTerminal: terminal.forceTerminal) { sink in
      try opened.reader.read(cid, each: sink)
    }
    guard isThere else { throw try opened.absence(of: cid) }
  }

  /// Prints a block as JSON; as its bytes if it has no JSON form, or if the user asked for these.
  private func show(
    _ block: Span<UInt8>, _ cid: CID, _ place: (account: DID, path: String)? = nil
  ) throws {
    if json { return Self.report.print((place?.account, place?.path, cid, value(of: block, cid))) }
    let rendering = RecordRendering(block)
    if rendering.isJSON && !raw {
      Console.print(rendering.bytes.span)
    } else {
      try Console.writeContent(forcesTerminal: terminal.forceTerminal) { sink in try sink(block) }
    }
  }

  /// What a block says; null, with a warning, if it has no JSON form.
  private func value(of block: Span<UInt8>, _ cid: CID) -> IPLDValue {
    do {
      return try DAGCBORDecoder.decode(block)
    } catch {
      common.say(
        .warning, "\(cid) has no JSON form: \(error); \"carpack cat --raw\" prints its bytes")
      return .null
    }
  }

  static let report = Report<(account: DID?, path: String?, cid: CID, record: IPLDValue)>(
    "cat", "`carpack cat`: a record, or another block."
  ) {
    Field("account", "whose it is; null for a CID that was given") { $0.account }
    Field("path", "collection/rkey; null for a CID that was given") { $0.path }
    Field("cid", "its CID") { $0.cid }
    Field("record", "what it says, as AT Protocol's JSON; null if it has no JSON form") {
      $0.record
    }
  }
}
