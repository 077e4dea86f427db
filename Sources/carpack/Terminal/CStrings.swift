internal import LibC

/// Texts as C wants them: each ended by a zero byte, and all of them by a null pointer.
@unsafe struct CStrings {
  let pointers: [UnsafeMutablePointer<CChar>?]

  init(_ texts: [String]) { unsafe pointers = texts.map { unsafe strdup($0) } + [nil] }

  func free() {
    unsafe pointers.forEach { unsafe LibC.free($0) }
  }
}
