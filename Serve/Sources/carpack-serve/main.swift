import Foundation
import Serve

/// `carpack-serve`: what `carpack serve` and `carpack view` run.
///
/// A program of its own, because a server is seventy megabytes that the command need not carry. It
/// takes a word and JSON: `serve` and `ServerOptions`. The exit statuses are the command's.
func fail(_ message: String, _ status: Int32) -> Never {
  FileHandle.standardError.write(Data("carpack: error: \(message)\n".utf8))
  exit(status)
}

let words = CommandLine.arguments.dropFirst()
guard words.count == 2, words.first == "serve",
  let options = try? JSONDecoder().decode(ServerOptions.self, from: Data((words.last ?? "").utf8))
else { fail("this program is run by \"carpack serve\" and \"carpack view\"", 64) }

do {
  try await ArchiveServer(options).run()
} catch is ArchiveServer.Nothing {
  fail("there is no archive that can be read", 66)
} catch let error as POSIXError {
  fail("\(options.log ?? "the log"): \(error.localizedDescription)", 73)
} catch {
  fail("\(options.host):\(options.port): \(error)", 1)
}
