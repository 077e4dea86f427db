internal import ATProtocol
internal import ArgumentParser
internal import Live
internal import Reports
internal import SystemPackage
internal import Terminal
internal import Viewer

/// `carpack view`: the page that shows archives.
struct ViewCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "view",
    _superCommandName: Carpack.name,
    abstract: "Show archives in a browser, or write the page that does.",
    usage: "carpack view <archive> ... [<options>]\n       carpack view --page <file> [<options>]",
    discussion: Help.discussion(
      """
      Opens the browser on a page that shows posts, replies, media, likes and every other record, of the newest snapshot or an older one, and what was deleted in between. The page reads the archive by itself and compares every block with its CID. It is served on this machine alone, under an address that nobody else knows, until Control-C.

      --page writes the page itself, one HTML file that needs no server and no network: open it in a browser and drop an archive onto it. On a web server that answers requests for ranges, page.html#url=ADDRESS shows the archive at an address; only what is looked at is fetched. Nothing is sent anywhere.

      Exit status: 0; 130 after Control-C; 64 if an address is given ("carpack pull" it first); 66 if there is no such archive; 73 if the file exists and --force is not given.
      """,
      examples: [
        "carpack view alice.example.com.car.zst",
        "carpack view backups/ --no-browser",
        "carpack view --page viewer.html",
        "carpack view --page - > viewer.html",
      ], environment: .serving))

  @Argument(
    help: ArgumentHelp("Archives, and folders to look for archives in.", valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var archives: [String] = []

  @Option(
    help: ArgumentHelp(
      "Write the page to a file, \"-\" for standard output.", valueName: "file"),
    completion: .file(extensions: ["html"]))
  var page: String?

  @Flag(help: "With --page: replace the file if it exists.")
  var force = false

  @Flag(help: "Say the address, and leave the browser to you.")
  var noBrowser = false

  @Option(
    help: ArgumentHelp(
      "Where to listen: an address of this machine and a port, or one of the two; any port that is free unless one is given.",
      valueName: "address:port"))
  var bind = BindAddress(port: 0)

  @OptionGroup var limits: LimitOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if page != nil, !archives.isEmpty {
      throw ValidationError("--page writes the page alone; archives are dropped onto it")
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
      return try ServeProgram.serve("page", archives, bind, limits, reporting) { json in
        json.field("opensBrowser", !noBrowser)
      }
    }
    let content = DownloadedFile.memory([try ViewerPage.html()])
    if page == "-" {
      try content.read { Console.print($0) }
    } else {
      try content.save(to: FilePath(page), replacing: force)
      common.say("\(page): open it in a browser, and drop an archive onto it")
    }
  }
}
