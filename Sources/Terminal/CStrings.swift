internal import LibC

/// Texts as C strings, and a null pointer after the last.
@unsafe package struct CStrings {
  package let pointers: [UnsafeMutablePointer<CChar>?]

  package init(_ texts: [String]) { unsafe pointers = texts.map { unsafe strdup($0) } + [nil] }

  package func free() {
    unsafe pointers.forEach { unsafe LibC.free($0) }
  }
}
