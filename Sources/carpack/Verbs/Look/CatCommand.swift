internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Extraction
internal import Files
internal import IPLD
internal import Snapshots
internal import Terminal

/// `carpack cat`: one thing from an archive, to standard output.
struct CatCommand: Verb {
  static let page = ManualPage("cat", PackageResources.cat_txt)

  @Flag(help: "Print the bytes of a record as they are stored.")
  var raw = false

  @OptionGroup var archive: ArchiveArgument

  @Argument(
    help: ArgumentHelp("A CID, collection/rkey, rkey, at:// URI or page.", valueName: "selector"))
  var selector: String

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var terminal: TerminalOptions

  @OptionGroup var common: CommonOptions

  func run() throws { try archive.read(show) }

  private func show(_ opened: OpenedArchive) throws {
    if case .cid(let cid) = try Selector(selector) {
      guard choice.at == nil, choice.accountOption.account == nil else {
        throw Failure(
          "a CID is looked up in the whole file", hint: "leave out --at and --account",
          status: .usage)
      }
      try show(cid, opened)
    } else {
      try showSelected(opened)
    }
    try opened.status.finish()
  }

  /// Prints what the selector means in the snapshot.
  private func showSelected(_ opened: OpenedArchive) throws {
    let snapshot = try opened.snapshot(choice, naming: [selector])
    let items = try opened.explainingAbsence(of: [selector], in: snapshot) {
      try Selection.items([selector], in: snapshot)
    }
    guard let item = items.first, items.count == 1 else {
      throw Failure(
        "\"\(selector)\" matches \(Quantity.count(items.count, "record"))",
        hint: "\"carpack ls\" lists them, \"carpack extract\" writes them to files", status: .usage)
    }
    switch item {
    case .cid(let cid): try show(cid, opened)
    case .record(let path):
      guard let block = try snapshot.record(path) else {
        throw try opened.absence(of: selector, in: snapshot)
      }
      try show(block.bytes.span)
    }
  }

  /// Prints a blob, or a block as JSON.
  private func show(_ cid: CID, _ opened: OpenedArchive) throws {
    guard raw || cid.codec != .dagCBOR else {
      guard let body = try opened.reader.body(of: cid) else {
        throw BackupError.notFound(selector)
      }
      return try show(body.span)
    }
    let isThere = try Console.writeContent(forcesTerminal: terminal.forceTerminal) { sink in
      try opened.reader.read(cid, each: sink)
    }
    guard isThere else { throw BackupError.notFound(selector) }
  }

  /// Prints a block as JSON; as its bytes if it has no JSON form, or if the user asked for these.
  private func show(_ block: Span<UInt8>) throws {
    let rendering = RecordRendering(block)
    if rendering.isJSON && !raw {
      Console.print(rendering.bytes.span)
    } else {
      try Console.writeContent(forcesTerminal: terminal.forceTerminal) { sink in try sink(block) }
    }
  }
}
