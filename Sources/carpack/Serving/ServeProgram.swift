internal import ATProtocol
internal import Keys
internal import LibC
internal import Terminal

/// `carpack-serve`: the program that replaces this one for work that needs libraries that
/// the command does not carry, an HTTP server and a database.
///
/// It takes a word and JSON; both programs come from the same source, and the installed ones lie
/// beside one another.
enum ServeProgram {
  static let name = "carpack-serve"
  /// The variable that says where it is, if it is elsewhere.
  static let variable = "CARPACK_SERVE"

  /// Replaces this process with that program.
  ///
  /// - Parameters:
  ///   - task: what the program does.
  ///   - writeFields: writes the options.
  /// - Throws: ``Failure`` if it is missing.
  static func run(_ task: String, _ writeFields: (inout JSONWriter) -> Void) throws -> Never {
    var json = JSONWriter()
    json.beginObject()
    writeFields(&json)
    json.endObject()
    let options = String(decoding: json.takeBytes(), as: UTF8.self)
    Console.flush()
    ArchiveKeys.handOn()
    for program in places {
      let arguments = unsafe CStrings([program, task, options])
      var pointers = unsafe arguments.pointers
      // A name without a folder is looked for where PATH says.
      unsafe execvp(program, &pointers)
      let code = errno
      unsafe arguments.free()
      guard code == ENOENT || code == ENOTDIR else {
        throw Failure(
          "\(program) cannot be run: \(unsafe String(cString: strerror(code)))", status: .failure)
      }
    }
    throw Failure(
      "\(name), which this command needs, is not installed",
      hint: "it comes with the packages; \"make serve\" builds it", status: .failure)
  }

  /// Where it may be, the likeliest first.
  private static var places: [String] {
    if let place = Host.environment(variable)?.value { return [place] }
    return [ownFolder.map { "\($0)/\(name)" }, name].compactMap(\.self)
  }

  /// The folder that this program lies in; nil if the system does not say.
  private static var ownFolder: String? {
    Program.path.flatMap { path in path.lastIndex(of: "/").map { String(path[..<$0]) } }
  }
}
