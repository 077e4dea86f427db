/// The reader that was written from the document alone, in Python.
package enum IndependentReader {
  /// Whether there is a Python 3 to run it with.
  package static let isPresent: Bool = (try? run(["--help"]))?.status == 0

  /// What a skipped test says.
  package static let absence = "there is no python3 to run the independent reader with"

  /// Runs it with these arguments.
  package static func run(_ arguments: [String]) throws -> (status: Int32, output: [UInt8]) {
    try run("carpack_reader", arguments)
  }

  /// What its judge of record proofs says of each proof in a list.
  ///
  /// - Parameter list: a file with a line for each: the CAR, the path and the did:key, tabs between
  ///   them.
  package static func judgeProofs(_ list: String) throws -> [String] {
    let (status, output) = try run("proof_reader", [list])
    return status == 0
      ? String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init) : []
  }

  /// Whether the parity of an archive is what the document makes of its bytes.
  package static func checkParity(_ path: String) throws -> (status: Int32, output: [UInt8]) {
    try run("parity_reader", ["check", path])
  }

  /// Has the short reader of the documents write a snapshot into a new folder.
  package static func write(_ path: String, into folder: String, snapshot number: Int) throws
    -> (status: Int32, output: [UInt8])
  {
    try OtherProgram.run(
      ["python3", "\(Command.packageRoot)/Docs/reader.py", path, folder, "\(number)"])
  }

  private static func run(_ program: String, _ arguments: [String]) throws
    -> (status: Int32, output: [UInt8])
  {
    try OtherProgram.run(
      ["python3", "\(Command.packageRoot)/Tests/IndependentReader/\(program).py"] + arguments)
  }
}
