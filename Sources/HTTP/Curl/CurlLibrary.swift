internal import CCurl
internal import LibC

/// libcurl, opened when it is first needed (`dlopen`), and the functions of it that are used.
///
/// Only this file and the shim know how it is called; nothing links it, so that commands that do
/// not use the network start fast.
@safe
struct CurlLibrary: @unchecked Sendable {
  typealias Easy = UnsafeMutableRawPointer
  typealias Multi = UnsafeMutableRawPointer
  typealias List = UnsafeMutablePointer<curl_slist>

  let functions: carpack_curl

  /// The library, or why there is none.
  private static let shared = Result(catching: open)

  /// The library.
  ///
  /// - Throws: ``TransportError`` for the URL if it cannot be used.
  static func forURL(_ url: String) throws(TransportError) -> CurlLibrary {
    try shared.mapError { TransportError(.unavailable($0.what), url: url) }.get()
  }

  /// What is missing: the library, or a function in it.
  struct Missing: Error {
    let what: String
  }

  #if canImport(Darwin)
    private static let names = ["/usr/lib/libcurl.4.dylib", "libcurl.4.dylib"]
  #else
    private static let names = ["libcurl.so.4"]
  #endif
}

extension CurlLibrary {
  /// Opens the library and looks its functions up; it stays open until the process ends.
  private static func open() throws(Missing) -> CurlLibrary {
    var opened: UnsafeMutableRawPointer?
    for name in names where unsafe opened == nil {
      unsafe opened = dlopen(name, RTLD_NOW | RTLD_LOCAL)
    }
    guard let handle = unsafe opened else {
      throw Missing(what: unsafe dlerror().map { unsafe String(cString: $0) } ?? names[0])
    }
    var functions = carpack_curl()
    if let missing = unsafe carpack_curl_look_up(&functions, handle) {
      throw Missing(what: "it has no \(unsafe String(cString: missing)); 7.80 or newer is needed")
    }
    guard functions.curl_global_init(CLong(CURL_GLOBAL_DEFAULT)) == CURLE_OK else {
      throw Missing(what: "curl_global_init failed")
    }
    return CurlLibrary(functions: functions)
  }

  /// TLS may write to a connection that is gone; on this thread that is now an error, and not a
  /// signal.
  static func ignoreBrokenPipes() {
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    unsafe sigaddset(&signals, SIGPIPE)
    unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
  }
}
