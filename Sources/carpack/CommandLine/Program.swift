internal import LibC

/// The name and the version of the command.
enum Program {
  static let name = "carpack"
  static let version = "0.2.0"
  /// Both, as archives and servers record the tool.
  static let tool = "\(name) \(version)"

  /// The path of its executable; nil if the system does not say.
  static var path: String? {
    #if canImport(Darwin)
      guard let path = unsafe _dyld_get_image_name(0).map({ unsafe String(cString: $0) }),
        let real = unsafe realpath(path, nil)
      else { return nil }
    #else
      guard let real = unsafe realpath("/proc/self/exe", nil) else { return nil }
    #endif
    defer { unsafe free(real) }
    return unsafe String(cString: real)
  }
}
