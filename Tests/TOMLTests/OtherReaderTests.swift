import Foundation
import TOML
import TestSupport
import Testing

/// Whether Python's own reader of TOML is here.
private let hasPython = {
  let result = try? run("import tomllib")
  return result == 0
}()

private func run(_ program: String) throws -> Int32 {
  let process = Process()
  process.executableURL = URL(filePath: "/usr/bin/env")
  process.arguments = ["python3", "-c", program]
  process.standardError = FileHandle.nullDevice
  try process.run()
  process.waitUntilExit()
  return process.terminationStatus
}

@Suite(.enabled(if: hasPython, "python3 with tomllib is not here"))
struct `Made-up documents` {
  /// Pieces that documents are put together from: some are whole lines, some break what stands
  /// beside them.
  private static let pieces = [
    "a", "b", "\"c d\"", "'e'", ".", ".", " = ", "=", "1", "-2", "+0x1f", "1_0", "0.5", "1e3",
    "inf", "true",
    "\"x\"", "'y'", "\"\\u00e9\\n\"", "\"\"\"z\n\"\"\"", "'''w'''", "[", "]", "[[", "]]", "{", "}",
    ", ",
    ",", "\n", "\n", "\n", "\r\n", " ", "\t", "# c\n", "[a]\n", "[a.b]\n", "[[b]]\n", "[b.a]\n",
    "a = 1\n",
    "a.b = 2\n", "b = {a = 1}\n", "c = [1, 2]\n", "[[a.b]]\n", "\\", "_", "00", "\"",
  ]
  /// Pieces that are whole lines, so that more documents are well-formed.
  private static let lines =
    pieces.filter { $0.count > 2 && $0.hasSuffix("\n") } + [
      "x = \"\"\"\n y \\\n z\"\"\"\n", "[c.a.b]\n", "c.a.d = 'x' # y\n",
      "d = {a.b = 1, c = [{}, {d = 'e'}]}\n", "[b.c]\n",
    ]

  /// What both readers say of a document: its content, or that it is invalid.
  private static func text(_ value: TOMLValue.Content) -> String {
    switch value {
    case .string(let text): "s" + text.utf8.map { String($0, radix: 16) }.joined(separator: ",")
    case .integer(let number): "i\(number)"
    case .float(let number): number.isNaN ? "fnan" : "f\(number.bitPattern)"
    case .boolean(let flag): "b\(flag)"
    case .array(let values): "[" + values.map { text($0.content) }.joined(separator: ";") + "]"
    case .table(let table):
      "{"
        + table.entries.map { "\(text(.string($0.key)))=\(text($0.value.content))" }.sorted()
        .joined(separator: ";") + "}"
    }
  }

  private static let program = """
    import json, struct, sys, tomllib
    def show(v):
        if isinstance(v, str): return "s" + ",".join("%x" % b for b in v.encode())
        if isinstance(v, bool): return "b" + str(v).lower()
        if isinstance(v, int): return "i%d" % v
        if isinstance(v, float): return "fnan" if v != v else "f%d" % struct.unpack("<Q", struct.pack("<d", v))[0]
        if isinstance(v, list): return "[" + ";".join(map(show, v)) + "]"
        if isinstance(v, dict): return "{" + ";".join(sorted(show(k) + "=" + show(w) for k, w in v.items())) + "}"
        return "other"
    out = []
    for text in json.load(open(sys.argv[1])):
        try: out.append(show(tomllib.loads(text)))
        except (tomllib.TOMLDecodeError, RecursionError): out.append("malformed")
    json.dump(out, open(sys.argv[2], "w"))
    """

  @Test func `are read or refused as another reader does`() throws {
    var generator = SeededGenerator()
    print(generator)
    let documents = (0..<20_000).map { number in
      (0..<Int.random(in: 1...14, using: &generator)).map { _ in
        let pieces = number.isMultiple(of: 2) ? Self.pieces : Self.lines
        return pieces.randomElement(using: &generator) ?? ""
      }.joined()
    }
    let folder = try TemporaryFolder()
    try folder.write("documents", Array(try JSONEncoder().encode(documents)))
    try folder.write("program.py", Array(Self.program.utf8))
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "python3", folder.file("program.py"), folder.file("documents"), folder.file("answers"),
    ]
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
    let answers = try JSONDecoder().decode([String].self, from: Data(try folder.read("answers")))
    var read = 0
    for (document, answer) in zip(documents, answers) where answer != "other" {
      let ours: String
      do throws(TOMLError) {
        ours = Self.text(.table(try TOMLDocument(Array(document.utf8)).root))
        read += 1
      } catch {
        ours = "malformed"
      }
      #expect(ours == answer, "\(document.debugDescription)")
    }
    // Were all of them refused, they would tell nothing.
    #expect(read > documents.count / 20)
  }
}
