import ATProtocol
import Foundation
import Synchronization
import Testing

@Suite struct `Writing JSON` {
  /// What `write` writes.
  private func json(pretty: Bool = false, _ write: (inout JSONWriter) -> Void) -> String {
    var writer = JSONWriter(pretty: pretty)
    write(&writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  private func writeExample(_ json: inout JSONWriter) {
    json.beginObject()
    json.key("a")
    json.beginArray()
    json.integer(1)
    json.boolean(true)
    json.null()
    json.beginObject()
    json.endObject()
    json.beginArray()
    json.endArray()
    json.endArray()
    json.key("b")
    json.beginObject()
    json.key("c")
    json.string("d")
    json.endObject()
    json.endObject()
  }

  @Test func `compact has no white space`() {
    #expect(json(writeExample) == #"{"a":[1,true,null,{},[]],"b":{"c":"d"}}"#)
  }

  @Test func `pretty has one line per item and nothing between empty brackets`() {
    let expected = """
      {
        "a": [
          1,
          true,
          null,
          {},
          []
        ],
        "b": {
          "c": "d"
        }
      }
      """
    #expect(json(pretty: true, writeExample) == expected)
  }

  @Test func `a scalar alone is JSON`() {
    #expect(json { $0.string("") } == #""""#)
    #expect(json(pretty: true) { $0.integer(-1) } == "-1")
  }

  @Test func `lines follow one another`() {
    let lines = json {
      for number in 1...3 {
        $0.beginArray()
        $0.integer(number)
        $0.endArray()
        $0.newline()
      }
    }
    #expect(lines == "[1]\n[2]\n[3]\n")
  }

  @Test func `what terminals act on is escaped in keys and strings, and nothing else is`() throws {
    let ranges: [ClosedRange<UInt32>] = [
      0...0x1f, 0x7f...0x9f, 0x61c...0x61c, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069,
    ]
    for value in UInt32(0)...0x2100 {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let text = "a\(scalar)b"
      let written = json {
        $0.beginObject()
        $0.key(text)
        $0.string(text)
        $0.endObject()
      }
      let isPlain = !ranges.contains { $0.contains(value) } && value != 0x22 && value != 0x5c
      #expect(written.unicodeScalars.contains(scalar) == isPlain || value < 0x80, "\(value)")
      if !isPlain { #expect(written.utf8.allSatisfy { 0x20..<0x7f ~= $0 }, "\(value)") }
      let read = try JSONSerialization.jsonObject(with: Data(written.utf8)) as? [String: String]
      #expect(read == [text: text], "\(value)")
    }
    #expect(json { $0.string("\u{9b}31m\u{202e}x\u{2069}“😀”") } == #""\u009b31m\u202ex\u2069“😀”""#)
  }

  @Test func `the buffer can be taken at any time`() {
    var writer = JSONWriter()
    var taken: [UInt8] = []
    writer.beginArray()
    taken += writer.takeBytes()
    writer.string("é")
    taken += writer.takeBytes()
    #expect(writer.takeBytes().isEmpty)
    writer.integer(2)
    writer.endArray()
    taken += writer.takeBytes()
    #expect(String(decoding: taken, as: UTF8.self) == #"["é",2]"#)
  }

  @Test func `strings and keys escape what JSON asks for, and what terminals act on`() {
    let text = "\"\\/\u{8}\t\n\u{c}\r\0\u{1f}\u{7f}é\u{2028}😀"
    let escaped = #""\"\\/\b\t\n\f\r\u0000\u001f\u007fé\u2028😀""#
    #expect(json { $0.string(text) } == escaped)
    let object = json {
      $0.beginObject()
      $0.key(text)
      $0.null()
      $0.endObject()
    }
    #expect(object == "{\(escaped):null}")
  }

  @Test func `every character comes back from another reader`() throws {
    let all = (0...0x10ffff).compactMap(UnicodeScalar.init).map(String.init)
    let text = json {
      $0.beginArray()
      for character in all { $0.string(character) }
      $0.endArray()
    }
    let read = try JSONDecoder().decode([String].self, from: Data(text.utf8))
    #expect(read.count == all.count)
    #expect(zip(read, all).allSatisfy { $0.utf8.elementsEqual($1.utf8) })
  }

  @Test func `integers keep all their digits`() {
    #expect(json { $0.integer(Int.min) } == "-9223372036854775808")
    #expect(json { $0.integer(Int128(UInt64.max)) } == "18446744073709551615")
    #expect(json { $0.integer(-1 - Int128(UInt64.max)) } == "-18446744073709551616")
  }

  @Test(arguments: [
    (0.1, "0.1"), (1, "1.0"), (-0.0, "-0.0"), (1e16, "1e+16"), (1e-5, "1e-05"),
    (.leastNonzeroMagnitude, "5e-324"),
    (.greatestFiniteMagnitude, "1.7976931348623157e+308"), (.nan, "null"),
    (.infinity, "null"),
  ])
  func `floats are the shortest that read back`(_ number: Double, _ expected: String) throws {
    #expect(json { $0.double(number) } == expected)
    if number.isFinite {
      let read = try JSONDecoder().decode(Double.self, from: Data(expected.utf8))
      #expect(read.bitPattern == number.bitPattern)
    }
  }

  @Test func `what is long is handed over in pieces that make the whole, and little is kept`() {
    func write(_ json: inout JSONWriter) -> Int {
      var longest = 0
      json.beginArray()
      for number in 0..<20_000 {
        json.beginObject()
        json.field("number", number)
        json.endObject()
        longest = max(longest, json.bytes.count)
      }
      json.endArray()
      json.newline()
      return longest
    }
    let pieces = Mutex<[[UInt8]]>([])
    var handing = JSONWriter { piece in pieces.withLock { $0.append(piece) } }
    #expect(write(&handing) <= 1 << 16)
    var whole = JSONWriter()
    #expect(write(&whole) > 1 << 16)
    #expect(pieces.withLock { $0.count } > 3)
    #expect(pieces.withLock { $0.flatMap(\.self) } + handing.takeBytes() == whole.takeBytes())
  }

  @Test func `a value without its key stops the program`() async {
    await #expect(processExitsWith: .failure) {
      var writer = JSONWriter()
      writer.beginObject()
      writer.null()
    }
    await #expect(processExitsWith: .failure) {
      var writer = JSONWriter()
      writer.null()
      writer.null()
    }
    await #expect(processExitsWith: .failure) {
      var writer = JSONWriter()
      writer.beginArray()
      writer.endObject()
    }
  }
}
