/// The reader that was written from the document alone, in Python.
public enum IndependentReader {
  /// Whether there is a Python 3 to run it with.
  public static let isPresent: Bool = (try? run(["--help"]))?.status == 0

  /// What a skipped test says.
  public static let absence = "there is no python3 to run the independent reader with"

  /// Runs it with these arguments.
  public static func run(_ arguments: [String]) throws -> (status: Int32, output: [UInt8]) {
    try OtherProgram.run(
      ["python3", "\(Command.packageRoot)/Tests/IndependentReader/carpack_reader.py"] + arguments)
  }
}
