/// Reads the lines of a document into a tree of tables.
struct TOMLParser {
  private var scanner: TOMLScanner
  private var tree = TOMLTree()

  init(_ bytes: [UInt8]) { scanner = TOMLScanner(bytes) }

  /// Reads all of it.
  mutating func parse() throws(TOMLError) -> TOMLTable {
    var table = TOMLTree.root
    while true {
      try scanner.skipSpace()
      guard let byte = scanner.current else { return tree.table(TOMLTree.root) }
      if byte == UInt8(ascii: "[") {
        table = try header()
      } else {
        try setting(in: table, depth: 1)
      }
      try scanner.endLine()
    }
  }

  /// Reads `[table]` or `[[table]]`.
  private mutating func header() throws(TOMLError) -> Int {
    let line = scanner.line
    _ = scanner.take("[")
    let isList = scanner.take("[")
    let path = try key()
    guard scanner.take("]"), !isList || scanner.take("]") else {
      throw scanner.error(.expected(isList ? "]]" : "]"))
    }
    return isList ? try tree.append(path, line: line) : try tree.open(path, line: line)
  }

  /// Reads `key = value`.
  private mutating func setting(in table: Int, depth: Int) throws(TOMLError) {
    let line = scanner.line
    let path = try key()
    guard scanner.take("=") else { throw scanner.error(.expected("=")) }
    scanner.skipBlanks()
    let value = try value(depth: depth + path.count)
    try tree.set(value, at: path, in: table, line: line)
  }

  /// Reads a key, and blanks around it; its parts have dots between them.
  private mutating func key() throws(TOMLError) -> [String] {
    var path: [String] = []
    repeat {
      guard path.count < TOMLDocument.maximumDepth else { throw scanner.error(.tooDeep) }
      scanner.skipBlanks()
      if scanner.isAtString {
        path.append(try scanner.shortString())
      } else {
        let word = scanner.word(TOMLScanner.isBare)
        guard !word.isEmpty else { throw scanner.error(.expected("a name")) }
        path.append(word)
      }
      scanner.skipBlanks()
    } while scanner.take(".")
    return path
  }

  private mutating func value(depth: Int) throws(TOMLError) -> TOMLValue {
    guard depth <= TOMLDocument.maximumDepth else { throw scanner.error(.tooDeep) }
    let line = scanner.line
    if scanner.isAtString { return TOMLValue(.string(try scanner.string()), line: line) }
    if scanner.take("[") { return TOMLValue(.array(try array(depth: depth)), line: line) }
    if scanner.take("{") { return TOMLValue(.table(try table(depth: depth)), line: line) }
    let word = scanner.word { TOMLScanner.isBare($0) || ".+:".utf8.contains($0) }
    guard !word.isEmpty else { throw scanner.error(.expected("a value")) }
    do throws(TOMLNumber.Fault) {
      return TOMLValue(try TOMLNumber.content(word), line: line)
    } catch {
      switch error {
      case .malformed: throw TOMLError(.malformedValue, line: line)
      case .tooLarge: throw TOMLError(.numberTooLarge, line: line)
      case .date: throw TOMLError(.date, line: line)
      }
    }
  }

  /// Reads a list after its bracket.
  private mutating func array(depth: Int) throws(TOMLError) -> [TOMLValue] {
    var values: [TOMLValue] = []
    while true {
      try scanner.skipSpace()
      if scanner.take("]") { return values }
      values.append(try value(depth: depth + 1))
      try scanner.skipSpace()
      if scanner.take("]") { return values }
      guard scanner.take(",") else { throw scanner.error(.expected(", or ]")) }
    }
  }

  /// Reads a table in braces after its brace: one line, and no comma at its end.
  private mutating func table(depth: Int) throws(TOMLError) -> TOMLTable {
    let number = tree.begin(line: scanner.line)
    scanner.skipBlanks()
    if scanner.take("}") { return TOMLTable([]) }
    while true {
      try setting(in: number, depth: depth)
      scanner.skipBlanks()
      if scanner.take("}") { return tree.table(number) }
      guard scanner.take(",") else { throw scanner.error(.expected(", or }")) }
      scanner.skipBlanks()
    }
  }
}
