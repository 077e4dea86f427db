internal import ATProtocol
internal import ArgumentParser
internal import Live
internal import SystemPackage
internal import Terminal
internal import Viewer

/// `carpack view`: the page that shows archives.
struct ViewCommand: ReportingCommand {
  static let page = ManualPage("view", PackageResources.view_txt)

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

  @Argument(
    help: ArgumentHelp(
      "Archives, and folders and buckets' prefixes to look for archives in.", valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var archives: [String] = []

  @OptionGroup var limits: LimitOptions

  @OptionGroup var store: StoreArguments

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
      return try ServeProgram.serve("page", archives, bind, limits, store, reporting) { json in
        json.field("opensBrowser", !noBrowser)
      }
    }
    try DownloadedFile.memory([try ViewerPage.html()]).write(to: page, replacing: force)
    if page != "-" {
      common.say("\(page): open it in a browser, and drop an archive onto it")
    }
  }
}
