internal import CCrypto
internal import LibC

/// libcrypto, opened when one of its functions is first needed (`dlopen`).
package enum CryptoLibrary {
  /// Functions of it.
  ///
  /// Without the library nothing can be said of what is read, as if it were linked: the process
  /// ends and says what is missing.
  ///
  /// - Parameter find: looks them up in the library; `nil` if it does not have all of them.
  package static func find<Functions>(_ find: (UnsafeMutableRawPointer?) -> Functions?) -> Functions
  {
    let library = unsafe carpack_crypto_open()
    if unsafe library != nil, let functions = unsafe find(library) { return functions }
    let reason = unsafe dlerror().map { unsafe String(cString: $0) } ?? "no reason given"
    let sentence = Array("carpack: error: libcrypto cannot be used: \(reason)\n".utf8)
    _ = unsafe write(STDERR_FILENO, sentence, sentence.count)
    // The status with which the system's loader ends a process for the same reason.
    exit(127)
  }
}
