internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Files
internal import IPLD
internal import Live
internal import Remote
internal import Snapshots
internal import SystemPackage
internal import Terminal
internal import Viewer

/// `carpack view`: the page that shows archives and repositories.
struct ViewCommand: ReportingCommand {
  static let page = ManualPage("view", PackageResources.view_txt)

  @Option(
    help: ArgumentHelp(
      "Write the page to a file, \"-\" for standard output.", valueName: "file"),
    completion: .file(extensions: ["html"]))
  var page: String?

  @Flag(help: "With --page: replace the file if it exists.")
  var force = false

  @Option(
    help: ArgumentHelp(
      "With --page: embed this archive in the page, which then shows it when opened.",
      valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var with: String?

  @Flag(help: "With --with: allow an archive that has private data.")
  var withPrivate = false

  @Flag(help: "Print the address without opening a browser.")
  var noBrowser = false

  @Option(
    help: ArgumentHelp(
      "Where to listen: an address of this machine, a port, or both (default: any free port).",
      valueName: "address:port"))
  var bind = BindAddress(port: 0)

  @Argument(
    help: ArgumentHelp(
      "Archives and CARs; folders and bucket prefixes are searched for archives.",
      valueName: "archive"),
    completion: .file(extensions: ["zst", "car"]))
  var archives: [String] = []

  @OptionGroup var limits: LimitOptions

  @OptionGroup var store: StoreArguments

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if page != nil, !archives.isEmpty {
      throw ValidationError(
        "--page writes the page alone; --with puts an archive into it, others are dropped onto it")
    }
    if page != nil, json {
      throw ValidationError("--page writes the page, not JSON: leave out --json")
    }
    if page == nil, with != nil {
      throw ValidationError("--with puts an archive into the page that --page writes")
    }
  }

  func run() throws {
    guard let page else {
      guard !archives.isEmpty else {
        throw Failure(
          "no archive is named",
          hint:
            "\"carpack view NAME.car.zst\" shows one; \"carpack view --page viewer.html\" writes the page",
          status: .usage)
      }
      let cars = try archives.filter(Self.isCAR)
      return try ServeProgram.serve(
        "page", archives.filter { !cars.contains($0) }, bind, limits, store, reporting
      ) { json in
        json.field("cars", cars)
        json.field("opensBrowser", !noBrowser)
      }
    }
    guard let with else {
      try DownloadedFile.memory([try ViewerPage.html()]).write(to: page, replacing: force)
      if page != "-" {
        common.say("\(page): open it in a browser, and drop an archive onto it")
      }
      return
    }
    try writePage(with: with, to: page)
  }

  /// Whether a CAR lies here, which the page reads by itself.
  private static func isCAR(_ path: String) throws -> Bool {
    guard !RemoteArchive.isAddress(path), !BlobFolder.isFolder(path) else { return false }
    return CARInput.holds(try InputFile(path), isCompressed: true)
  }

  /// Writes the page with an archive in it; one with private data is for its owner alone.
  private func writePage(with archive: String, to page: String) throws {
    let file = try InputFile(archive)
    guard file.count <= ArchivePage.maximumArchive else {
      throw Failure(
        "\(archive) is too large for a page: over \(Quantity.bytes(ArchivePage.maximumArchive))",
        hint: "\"carpack view \(archive.shellWord)\" shows it without", status: .refused)
    }
    let isPrivate = AtomicFile.isPrivate(try ArchiveReader(path: FilePath(archive)))
    guard !isPrivate || withPrivate else {
      throw Failure(
        "\(archive) has private data",
        hint: "--with-private puts it into the page as well", status: .refused)
    }
    let content = try file.withBytes { bytes in
      try ViewerPage.html(with: bytes.array, named: FilePath(archive).lastComponent?.string ?? "")
    }
    guard page != "-" else { return Console.print(content.span) }
    try AtomicFile.save(to: FilePath(page), replacing: force, isPrivate: isPrivate) {
      try $0(content.span)
    }
    common.say("\(page): open it in a browser, which shows \(archive)")
  }
}
