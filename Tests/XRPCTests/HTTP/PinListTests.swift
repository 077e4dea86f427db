import HTTP
import Testing

@Suite struct `a list of pins` {
  @Test(arguments: [
    ("", []), (" \n ", []), ("a.test:443:1.2.3.4", ["a.test:443:1.2.3.4"]),
    ("a.test:443:1.2.3.4 b.test:80:::1", ["a.test:443:1.2.3.4", "b.test:80:::1"]),
    ("a.test:443:1.2.3.4\nb.test:80:[::1]\n", ["a.test:443:1.2.3.4", "b.test:80:[::1]"]),
    ("a.test:443:1.2.3.4,5.6.7.8", ["a.test:443:1.2.3.4,5.6.7.8"]),
    ("a.test:443:1.2.3.4,b.test:80:5.6.7.8", ["a.test:443:1.2.3.4", "b.test:80:5.6.7.8"]),
    (
      "a.test:443:1.2.3.4,[fd00::1],b.test:80:::1,::2",
      ["a.test:443:1.2.3.4,[fd00::1]", "b.test:80:::1,::2"]
    ),
  ])
  func `has blanks or commas between`(text: String, pins: [String]) throws {
    #expect(try HostPin.list(text) == pins)
    for pin in pins { _ = try HostPin(pin) }
  }

  @Test(arguments: [
    "a.test", "a.test:443", "1.2.3.4", "a.test:443:1.2.3.4,b.test", "a.test:443:host",
    // An address, or the port 2 of a host called 1.
    "a.test:443:1.2.3.4,1:2:3::4",
  ])
  func `is refused where something in it is no pin, or may be two things`(text: String) {
    #expect(throws: TransportError.self) { try HostPin.list(text) }
  }
}
