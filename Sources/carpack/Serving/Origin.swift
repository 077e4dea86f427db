internal import ArgumentParser

/// The origin of a website as browsers send it, `https://HOST` or `https://HOST:PORT`; or `*`, for
/// all (Fetch, section 3.2).
struct Origin: ExpressibleByArgument {
  /// In lower case, as browsers send it.
  let text: String

  init?(argument: String) {
    text = argument.lowercased()
    guard text != "*" else { return }
    let schemes = ["https://", "http://"]
    guard let scheme = schemes.first(where: text.hasPrefix) else { return nil }
    let host = text.dropFirst(scheme.count)
    // A path, or a slash at the end, would match no request.
    guard !host.isEmpty, !host.contains(where: { "/?#@*, ".contains($0) }) else { return nil }
  }
}
