internal import Synchronization

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The proxy that the environment names for `https`, and the hosts it is not for.
///
/// libcurl would read the same variables; but the check of addresses has to know which host is
/// connected to.
final class ProxySettings: Sendable {
  private let proxy: String?
  private let exceptions: [Substring]
  /// Hosts whose address the user has set: a proxy would look them up by itself.
  private let pinned: Set<Authority>
  private let observer: @Sendable (NetworkEvent) -> Void
  /// Whether the observer has been told that a proxy is used.
  private let isTold = Atomic<Bool>(false)

  /// The environment of this process.
  static var environment: [String: String] { ProcessInfo.processInfo.environment }

  /// Reads `https_proxy`, `all_proxy` and `no_proxy`, in small letters or capitals.
  init(
    environment: [String: String],
    pinned: Set<Authority> = [],
    observer: @escaping @Sendable (NetworkEvent) -> Void = { _ in }
  ) {
    self.pinned = pinned
    self.observer = observer
    func variable(_ names: String...) -> String? {
      names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    }
    proxy = variable("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    exceptions = (variable("no_proxy", "NO_PROXY") ?? "").lowercased().split { ", \t".contains($0) }
  }

  /// The proxy to a URL; nil for none, as for this machine, for pinned and excepted hosts, and for
  /// all that is not secure.
  ///
  /// The first use is an event, ``NetworkEvent/proxy(_:)``.
  func proxy(for url: HTTPURL) -> String? {
    guard let proxy, url.isSecure, !url.authority.isLoopback,
      !pinned.contains(url.authority)
    else { return nil }
    let host = url.authority.host
    for exception in exceptions {
      var name = exception
      while name.hasPrefix(".") || name.hasSuffix(".") {
        name = name.hasPrefix(".") ? name.dropFirst() : name.dropLast()
      }
      if name == "*" || host == name { return nil }
      if !name.isEmpty, host.hasSuffix("." + name), url.authority.address == nil { return nil }
    }
    if !isTold.exchange(true, ordering: .relaxed) {
      // It may carry a user name and a password.
      let place = proxy.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
      observer(.proxy(Excerpt.of(String(place))))
    }
    return proxy
  }
}
