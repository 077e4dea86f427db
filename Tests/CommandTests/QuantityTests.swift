import Terminal
import Testing

@Suite struct `A time to wait` {
  @Test(arguments: [
    (0.0, "0 s"), (0.4, "0 s"), (12, "12 s"), (60, "1 min"), (200, "3 min 20 s"), (600, "10 min"),
    (3600, "1 h"), (3659, "1 h"), (7500, "2 h 5 min"),
  ]) func `has two units at most, and none with nothing`(_ seconds: Double, _ text: String) {
    #expect(Quantity.duration(seconds: seconds) == text)
  }
}
