import TOML
import TestSupport
import Testing

@Suite struct `A TOML document` {
  private func read(_ text: String) throws -> TOMLTable {
    try TOMLDocument(Array(text.utf8)).root
  }

  private func fault(_ text: String) -> TOMLError? {
    do throws(TOMLError) {
      _ = try TOMLDocument(Array(text.utf8))
      return nil
    } catch {
      return error
    }
  }

  @Test func `has values under names, with their lines`() throws {
    let root = try read("# a comment\na = 'x'\n\n[b]\nc.d = [\n  1,\n  true, # two\n]\n")
    #expect(root["a"] == TOMLValue(.string("x"), line: 2))
    guard case .table(let b)? = root["b"]?.content, case .table(let c)? = b["c"]?.content else {
      Issue.record("no tables")
      return
    }
    #expect(
      c["d"]
        == TOMLValue(
          .array([TOMLValue(.integer(1), line: 6), TOMLValue(.boolean(true), line: 7)]), line: 5))
    #expect(root.entries.map(\.line) == [2, 4])
  }

  @Test func `keeps the order of the file`() throws {
    #expect(try read("z=1\na=2\n[m]\n[b]\n").entries.map(\.key) == ["z", "a", "m", "b"])
  }

  @Test func `has lists of tables`() throws {
    let root = try read("[[a]]\nx = 1\n[a.sub]\ny = 2\n[[a]]\nx = 3\n")
    guard case .array(let tables)? = root["a"]?.content else {
      Issue.record("no list")
      return
    }
    #expect(tables.count == 2)
    #expect(tables.map(\.line) == [1, 5])
  }

  @Test(arguments: [
    (#""a\tb\u00e9\U0001F600\\""#, "a\tb\u{e9}\u{1F600}\\"), (#"'a\tb'"#, #"a\tb"#),
    ("\"\"\"\na\\\n   b\"\"\"", "ab"), ("'''a\nb'''", "a\nb"), ("\"\"\"a\"\"b\"\"\"", "a\"\"b"),
    ("\"\"\"\"\"x\"\"\"\"\"", "\"\"x\"\""), ("\"\"", ""), ("''''''", ""),
    ("\"\"\"a\r\nb\"\"\"", "a\nb"), ("\"\\u0000\"", "\0"),
  ]) func `has texts in four forms`(written: String, text: String) throws {
    #expect(try read("a = \(written)\n")["a"]?.content == .string(text))
  }

  @Test(arguments: [
    ("0", 0), ("-17", -17), ("+1_000", 1000), ("0xDEAD_beef", 0xdead_beef), ("0o17", 15),
    ("0b101", 5), ("9223372036854775807", Int64.max), ("-9223372036854775808", Int64.min),
  ]) func `has whole numbers`(written: String, number: Int64) throws {
    #expect(try read("a = \(written)")["a"]?.content == .integer(number))
  }

  @Test(arguments: [
    ("1.5", 1.5), ("-0.0", -0.0), ("6.626e-34", 6.626e-34), ("1e06", 1e6), ("1_0.2_5", 10.25),
    ("inf", Double.infinity), ("-inf", -Double.infinity),
  ]) func `has numbers with a fraction`(written: String, number: Double) throws {
    #expect(try read("a = \(written)")["a"]?.content == .float(number))
  }

  @Test(arguments: [
    ("a = 1\na = 2", 2, TOMLError.Reason.duplicateKey("a")),
    ("[a]\n[b]\n[a]", 3, .duplicateTable("a")),
    ("a.b = 1\n[a]", 2, .duplicateTable("a")),
    ("a = {b = 1}\n[a.c]", 2, .duplicateTable("a")),
    ("a = {b = 1}\na.c = 2", 2, .duplicateKey("a.c")),
    ("a = []\n[[a]]", 2, .duplicateTable("a")),
    ("[a.b]\n[a]\nb.c = 1", 3, .duplicateKey("b.c")),
    ("a", 1, .expected("=")), ("a =", 1, .expected("a value")), ("= 1", 1, .expected("a name")),
    ("[a", 1, .expected("]")), ("[[a]", 1, .expected("]]")),
    ("a = 1 b = 2", 1, .expected("the end of the line")),
    ("a = [1 2]", 1, .expected(", or ]")), ("a = {b = 1,}", 1, .expected("a name")),
    ("a = {b = 1\n}", 1, .expected(", or }")),
    ("a = \"x\nb = 2", 1, .unterminatedString), ("\na = '''x\n\n", 2, .unterminatedString),
    ("a = \"\\x\"", 1, .malformedEscape), ("a = \"\\ud800\"", 1, .malformedEscape),
    ("a = \"\\u12\"", 1, .malformedEscape),
    ("a = yes", 1, .malformedValue), ("a = 01", 1, .malformedValue),
    ("a = 1__0", 1, .malformedValue), ("a = 1.", 1, .malformedValue),
    ("a = .5", 1, .malformedValue), ("a = 0x", 1, .malformedValue),
    ("a = 20h", 1, .malformedValue), ("a = True", 1, .malformedValue),
    ("a = 9223372036854775808", 1, .numberTooLarge),
    ("a = 1979-05-27", 1, .date), ("a = 07:32:00", 1, .date),
    ("a = 'x\0y'", 1, .controlCharacter), ("# \u{7f}", 1, .controlCharacter),
    ("a = 1\r", 1, .expected("the end of the line")), ("\u{feff}a = 1", 1, .expected("a name")),
  ]) func `is refused where it is malformed, with the line`(
    text: String, line: Int, reason: TOMLError.Reason
  ) {
    let found = fault(text)
    #expect(found?.reason == reason)
    #expect(found?.line == line)
  }

  @Test func `is refused where it is not UTF-8`() {
    #expect(throws: TOMLError.self) { try TOMLDocument(Array("a = 1\nb = '".utf8) + [0xff]) }
    do throws(TOMLError) {
      _ = try TOMLDocument(Array("a = 1\nb = '".utf8) + [0xff, 0x27])
    } catch {
      #expect(error.reason == .notUTF8)
      #expect(error.line == 2)
    }
  }

  @Test(arguments: ["[", "{a=", "a.", "[["])
  func `is refused where it nests too deep, however deep`(_ part: String) {
    let opening = String(repeating: part, count: 60_000)
    let text =
      part == "a."
      ? opening : part == "[[" ? "[\(String(repeating: "a.", count: 100))a]" : "k = \(opening)"
    #expect(fault(text)?.reason == .tooDeep)
  }

  @Test func `is refused where it is too long`() {
    let text = String(repeating: "#\n", count: TOMLDocument.maximumLength / 2)
    #expect(fault(text) == nil)
    #expect(fault(text + "#")?.reason == .tooLong)
  }

  @Test(.timeLimit(.minutes(5))) func `takes no longer for many tables than for few`() throws {
    let line = "[[a]]\n"
    let count = TOMLDocument.maximumLength / line.utf8.count
    let root = try read(String(repeating: line, count: count))
    guard case .array(let tables)? = root["a"]?.content else {
      Issue.record("no list")
      return
    }
    #expect(tables.count == count)
  }
}
