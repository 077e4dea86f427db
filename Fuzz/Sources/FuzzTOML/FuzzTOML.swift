import FuzzSupport
import TOML

/// Files of settings: read or refused with a line that they have, and what is read does not change
/// by a comment behind it.
enum FuzzTOML: Fuzzer {
  static func seeds(_ corpus: SeedCorpus?) -> [[UInt8]] {
    [
      "[defaults]\nquiet = true\n[backup]\noutput = '~/a/'\n[[account]]\nname = \"a.test\"\n",
      "a.b = {c = [1, 0x2, 3.5e1, inf],\"d\" = true} # x\n[[e]]\n[e.f]\n",
      "a = \"\"\"\nb\\u00e9\\\n  c\"\"\"\nd = '''\ne'''\nf = 1979-05-27\n",
    ].map { Array($0.utf8) }
  }

  static func run(_ bytes: Span<UInt8>) {
    let bytes = bytes.copy
    switch read(bytes) {
    case .success(let table):
      require(count(table) <= bytes.count, "more comes out than went in")
      // As text, for a number that is none is not equal to itself.
      let longer = bytes + Array("\n# x\n".utf8)
      if longer.count <= TOMLDocument.maximumLength {
        require(shown(read(longer)) == shown(.success(table)), "what follows changes the settings")
      }
    case .failure(let error):
      requireLegible(error.what)
      let lines = bytes.count { $0 == UInt8(ascii: "\n") } + 1
      require(1...lines ~= error.line, "line \(error.line) of \(lines)")
    }
  }

  private static func shown(_ result: Result<TOMLTable, TOMLError>) -> String {
    switch result {
    case .success(let table): shown(TOMLValue(.table(table), line: 0))
    case .failure(let error): "\(error)"
    }
  }

  private static func shown(_ value: TOMLValue) -> String {
    switch value.content {
    case .table(let table):
      table.entries.map { "\($0.line) \($0.key)=\(shown($0.value))" }.joined(separator: ",")
    case .array(let values): "[" + values.map(shown).joined(separator: ",") + "]"
    default: "\(value)"
    }
  }

  private static func read(_ bytes: [UInt8]) -> Result<TOMLTable, TOMLError> {
    Result { () throws(TOMLError) in try TOMLDocument(bytes).root }
  }

  /// How many names there are; tables nest no deeper than the reader allows.
  private static func count(_ table: TOMLTable) -> Int {
    table.entries.reduce(table.entries.count) { $0 + count($1.value) }
  }

  private static func count(_ value: TOMLValue) -> Int {
    switch value.content {
    case .table(let table): count(table)
    case .array(let values): values.reduce(0) { $0 + count($1) }
    default: 0
    }
  }
}
