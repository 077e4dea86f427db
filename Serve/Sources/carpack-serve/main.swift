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
func fail(_ failure: Failure) -> Never {
  Console.put(line: "carpack: error: \(failure.message)")
  if let hint = failure.hint { Console.put(line: "hint: \(hint)") }
  exit(failure.status.number)
}

func fail(_ message: String, _ status: ExitStatus) -> Never {
  fail(Failure(message, status: status))
}

func options<Options: Decodable>(_ text: String) -> Options {
  do {
    return try JSONDecoder().decode(Options.self, from: Data(text.utf8))
  } catch {
    fail("carpack and carpack-serve have different versions: \(error)", .usage)
  }
}

func serve(_ options: ServerOptions) async {
  do {
    exit(try await ArchiveServer(options).run())
  } catch let error as Errno {
    fail("\(options.log ?? "the log"): \(error)", .cannotCreate)
  } catch {
    fail(Failure(error))
  }
}

func writeDatabase(_ options: SQLiteOptions) {
  do {
    let report = try SQLiteExport.run(options)
    report.say(options)
  } catch let fault as SQLiteExport.Fault {
    fail("\(options.database): \(fault)", .cannotCreate)
  } catch let error as DatabaseError {
    fail("\(options.database): \(error)", error.isOfFile ? .cannotCreate : .ioError)
  } catch {
    fail(Failure(error).of(options.archive))
  }
}

ArchiveKeys.install()
let words = Host.arguments
switch words.first {
case "serve" where words.count == 2: await serve(options(words[1]))
case "sqlite" where words.count == 2: writeDatabase(options(words[1]))
default:
  fail("this program is run by \"carpack serve\", \"carpack view\" and \"carpack export\"", .usage)
}
