internal import ArgumentParser

/// Where a server listens: `ADDRESS:PORT`, and either alone.
struct BindAddress: ExpressibleByArgument, CustomStringConvertible {
  /// As a personal data server does where it is tried out.
  static let usualPort = 2583

  let host: String
  let port: Int

  var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

  init(host: String = "127.0.0.1", port: Int = usualPort) { (self.host, self.port) = (host, port) }

  init?(argument: String) {
    if let port = Self.port(argument[...]) {
      self.init(port: port)
      return
    }
    var (host, rest) = (argument[...], ""[...])
    if argument.hasPrefix("[") {
      guard let end = argument.firstIndex(of: "]") else { return nil }
      host = argument[argument.index(after: argument.startIndex)..<end]
      rest = argument[argument.index(after: end)...]
    } else if argument.count(where: { $0 == ":" }) == 1,
      let colon = argument.firstIndex(of: ":")
    {
      (host, rest) = (argument[..<colon], argument[colon...])
    }
    let name = host.isEmpty ? "127.0.0.1" : String(host)
    if rest.isEmpty {
      self.init(host: name)
    } else {
      guard rest.first == ":", let port = Self.port(rest.dropFirst()) else { return nil }
      self.init(host: name, port: port)
    }
  }

  private static func port(_ text: Substring) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text).flatMap { $0 < 1 << 16 ? $0 : nil }
  }
}
