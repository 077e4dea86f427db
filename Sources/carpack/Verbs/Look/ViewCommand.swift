internal import ArgumentParser
internal import Backup
internal import SystemPackage

/// `carpack view`: the page that shows archives.
struct ViewCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "view",
    _superCommandName: Carpack.name,
    abstract: "Write the page that shows archives in any browser.",
    usage: "carpack view --page <file> [<options>]",
    discussion: Help.discussion(
      """
      The page is one HTML file that needs no server and no network. Open it in a browser and drop an archive onto it: it reads the archive by itself, compares every block with its CID, and shows posts, replies, media, likes and every other record, of the newest snapshot or an older one, and what was deleted in between. Nothing is sent anywhere.

      On a web server that answers requests for ranges, page.html#url=ADDRESS shows the archive at an address; only what is looked at is fetched.

      Exit status: 0; 73 if the file exists and --force is not given.
      """,
      examples: [
        "carpack view --page viewer.html",
        "carpack view --page viewer.html --force",
        "carpack view --page - > viewer.html",
      ]))

  @Option(
    help: ArgumentHelp("The file to write, \"-\" for standard output.", valueName: "file"),
    completion: .file(extensions: ["html"]))
  var page: String?

  @Flag(help: "Replace the file if it exists.")
  var force = false

  @OptionGroup var common: CommonOptions

  @Argument(help: .hidden)
  var archives: [String] = []

  func run() throws {
    guard let page, archives.isEmpty else {
      throw Failure(
        "archives are shown by a page that you open in a browser",
        hint: "\"carpack view --page viewer.html\" writes it; drop the archive onto it",
        status: .usage)
    }
    let content = try FetchedPiece([ViewerPage.html()])
    if page == "-" {
      try content.read { Console.print($0) }
    } else {
      try content.save(to: FilePath(page), replacing: force)
      common.say("\(page): open it in a browser, and drop an archive onto it")
    }
  }
}
