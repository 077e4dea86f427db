/// What the command is called, and which one it is.
enum Program {
  static let name = "carpack"
  static let version = "0.1.0"
  /// Both, as archives and servers say which tool wrote them.
  static let tool = "\(name) \(version)"
}
