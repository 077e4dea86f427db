import ATProtocol
import LibC
import Remote
import SystemPackage
import Terminal

/// What is printed when the server has started.
struct Announcement {
  private let options: ServerOptions
  private let archives: Int
  private let accounts: Int
  private let holdsSealed: Bool
  private let origin: String
  private let token: String

  init(_ options: ServerOptions, _ shelf: Shelf, port: Int, token: String) {
    self.options = options
    self.token = token
    (archives, accounts) = (shelf.archives.count, shelf.accounts.count)
    holdsSealed = shelf.holdsSealed
    let everywhere = ["0.0.0.0", "::"].contains(options.host)
    let host = everywhere ? "localhost" : options.host
    origin = "http://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }

  /// The secret part of the path: 128 bits.
  static func newToken() -> String {
    var generator = SystemRandomNumberGenerator()
    let bytes = (0..<2).map { _ in generator.next() as UInt64 }
    return bytes.map { number in
      let digits = String(number, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  /// Prints a warning.
  static func warn(_ text: String) { write("carpack: warning: \(text)\n", to: .standardError) }

  private static func write(_ text: String, to file: FileDescriptor) {
    do {
      try file.writeAll(text.utf8)
    } catch {
      // No reader is left; the server continues.
    }
  }

  /// Prints the server's address, and opens the browser if that is wanted.
  func say() {
    let page = "\(origin)/\(token)/"
    if options.isJSON {
      var json = JSONWriter()
      json.beginObject()
      json.field("schema", "carpack.serve")
      json.key("version")
      json.integer(1)
      json.field("page", page)
      json.key("pds")
      if options.offer == .everything { json.string(origin) } else { json.null() }
      json.key("archives")
      json.integer(archives)
      json.key("accounts")
      json.integer(accounts)
      json.endObject()
      json.newline()
      Self.write(String(decoding: json.takeBytes(), as: UTF8.self), to: .standardOutput)
    } else if !options.isQuiet {
      Self.write(lines(page).map { "carpack: \($0)\n" }.joined(), to: .standardError)
    }
    if archives == 0, options.cars.isEmpty {
      let places = options.paths.map { RemoteArchive.shown($0) }.joined(separator: ", ")
      Self.warn("no archive (*.car.zst) in \(places) yet; new ones appear while it runs")
    }
    if options.offer == .everything, !HostRule.isLoopback(options.host) {
      Self.warn(
        "\(options.host) can be reached from other machines: everyone who reaches it can read the newest snapshots"
      )
    }
    if options.opensBrowser { open(page) }
  }

  private func lines(_ page: String) -> [String] {
    func count(_ number: Int, _ name: String) -> String {
      "\(number) \(name)\(number == 1 ? "" : "s")"
    }
    let look = "\(page) shows them in a browser; keep this address to yourself"
    guard options.offer == .everything else { return [look, "Control-C ends it"] }
    let websites = OriginRule(allowed: options.allowedOrigins).sentence(sealed: holdsSealed)
    return [
      "serving \(count(archives, "archive")) with \(count(accounts, "account"))",
      "\(origin) is a read-only personal data server", websites, look,
      options.impersonates
        ? "\(origin) is also a directory whose documents name this server as the accounts'"
        : "\"carpack backup ACCOUNT --pds \(origin)\" asks it; without --pds, the account's own server",
    ].compactMap(\.self)
  }

  private func open(_ page: String) {
    #if os(macOS)
      let program = "open"
    #else
      let program = "xdg-open"
    #endif
    let wanted = unsafe getenv("BROWSER").map { unsafe String(cString: $0) }
    // The system forgets it when it ends.
    signal(SIGCHLD, SIG_IGN)
    do {
      _ = try OtherProgram.start([wanted ?? program, page])
    } catch {
      Self.warn("the browser cannot be opened: \(error)")
    }
  }
}
