#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Texts as C wants them: each ended by a zero byte, and all of them by a null pointer.
@unsafe struct CStrings {
  let pointers: [UnsafeMutablePointer<CChar>?]

  init(_ texts: [String]) { unsafe pointers = texts.map { unsafe strdup($0) } + [nil] }

  func free() {
    #if canImport(Darwin)
      unsafe pointers.forEach { unsafe Darwin.free($0) }
    #elseif canImport(Glibc)
      unsafe pointers.forEach { unsafe Glibc.free($0) }
    #else
      unsafe pointers.forEach { unsafe Musl.free($0) }
    #endif
  }
}
