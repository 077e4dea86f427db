import Failures
import Keys
import LibC
import SQLite
import Serve
import SystemPackage
import Tables
import Terminal

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `carpack-serve`: what `carpack serve`, `carpack view` and `carpack export --sqlite` run.
///
/// A program of its own, because a server and a database are twenty megabytes that the command
/// need not carry. It takes a word and JSON: `serve` and `ServerOptions`, or `sqlite` and
/// `SQLiteOptions`. The exit statuses are the command's.
func fail(_ message: String, _ status: Int32) -> Never {
  Console.put(line: "carpack: error: \(message)")
  exit(status)
}

func options<Options: Decodable>(_ text: String) -> Options {
  do {
    return try JSONDecoder().decode(Options.self, from: Data(text.utf8))
  } catch {
    fail("carpack and carpack-serve are of different versions: \(error)", 64)
  }
}

func serve(_ options: ServerOptions) async {
  do {
    exit(try await ArchiveServer(options).run())
  } catch is ArchiveServer.Nothing {
    fail("there is no archive that can be read", 66)
  } catch let error as Errno {
    fail("\(options.log ?? "the log"): \(error)", 73)
  } catch {
    fail("\(options.host):\(options.port): \(error)", 1)
  }
}

func writeDatabase(_ options: SQLiteOptions) {
  do {
    let report = try SQLiteExport.run(options)
    report.say(options)
  } catch let fault as SQLiteExport.Fault {
    fail("\(options.database): \(fault)", 73)
  } catch let error as DatabaseError {
    fail("\(options.database): \(error)", error.isOfFile ? 73 : 74)
  } catch {
    let failure = Failure(error).of(options.archive)
    if let hint = failure.hint { Console.put(line: "hint: \(hint)") }
    fail(failure.message, failure.status.number)
  }
}

ArchiveKeys.install()
let words = Host.arguments
switch words.first {
case "serve" where words.count == 2: await serve(options(words[1]))
case "sqlite" where words.count == 2: writeDatabase(options(words[1]))
default:
  fail("this program is run by \"carpack serve\", \"carpack view\" and \"carpack export\"", 64)
}
