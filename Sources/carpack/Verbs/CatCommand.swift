internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Backup
internal import IPLD

/// `carpack cat`: one thing from an archive, to standard output.
struct CatCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cat",
    _superCommandName: Carpack.name,
    abstract: "Print one blob, or one record as JSON.",
    discussion: """
      SELECTOR is a CID, collection/rkey, or an at:// URI. A record is looked for in the newest snapshot of its account, or in the one that --at chooses: deleted posts are still there. A CID is looked for in the whole file. A blob comes as its bytes; a record, or any other DAG-CBOR block, as JSON, unless --raw. What is printed has been checked against its CID; of a large blob each part against its checksum before it is printed. On a terminal, control characters are printed as escapes.

      Exit status: 66 if it is not there, 11 if it is damaged, 64 if the archive holds several accounts and collection/rkey does not say whose.
      """)

  @OptionGroup var archive: ArchiveArgument

  @Argument(help: ArgumentHelp("A CID, collection/rkey, or at:// URI.", valueName: "selector"))
  var selector: String

  @OptionGroup var choice: SnapshotOptions

  @Flag(help: "Print the bytes of a record as they are stored.")
  var raw = false

  func run() throws {
    let item = try Selection.Item(selector)
    if case .cid = item, choice.at != nil || choice.accountOption.account != nil {
      throw Failure(
        "a CID is looked for in the whole file", hint: "leave out --at and --account",
        status: .usage)
    }
    let opened = try archive.open()
    switch item {
    case .cid(let cid) where raw || cid.codec != .dagCBOR:
      let isThere = try Console.writeContent { sink in
        try opened.reader.read(cid, each: sink)
      }
      guard isThere else { throw BackupError.notFound(selector) }
    case .cid(let cid):
      guard let body = try opened.reader.body(of: cid) else {
        throw BackupError.notFound(selector)
      }
      try show(body.span)
    case .record(let path):
      let snapshot = try opened.snapshot(choice, naming: [selector])
      guard let block = try snapshot.record(path.text) else {
        throw try absence(opened, snapshot)
      }
      try show(block.bytes.span)
    }
    let status = opened.status
    if status != .success { throw status }
  }

  /// Prints a block as JSON; as its own bytes if it cannot be that, or if these were asked for.
  private func show(_ block: Span<UInt8>) throws {
    let rendering = RecordRendering(block)
    if rendering.isJSON && !raw {
      Console.print(rendering.bytes.span)
    } else {
      try Console.writeContent { sink in try sink(block) }
    }
  }

  /// That the record is not in the snapshot; another may have it.
  private func absence(_ opened: OpenedArchive, _ snapshot: ArchivedSnapshot) throws -> any Error {
    let history = try opened.history
    guard history.entries.count > 1,
      let entry = history.entries.first(where: { $0.cid == snapshot.cid })
    else { return BackupError.notFound(selector) }
    return Failure(
      "\(selector) is not in snapshot number \(entry.number), made \(entry.createdAt)",
      hint: "another may have it: \"carpack log\" lists them, --at chooses", status: .noInput)
  }
}
