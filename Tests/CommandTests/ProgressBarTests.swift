import Terminal
import Testing

@Suite struct `A progress bar` {
  @Test(arguments: [
    (0, "····················"), (1, "▏···················"), (8, "█···················"),
    (84, "██████████▌·········"), (159, "███████████████████▉"), (160, "████████████████████"),
    (999, "████████████████████"),
  ]) func `is twenty characters of eight steps each`(_ done: UInt64, _ bar: String) {
    #expect(ProgressBar.text(done, of: 160) == bar)
    #expect(bar.count == ProgressBar.width)
  }

  @Test func `has room for the largest numbers`() {
    #expect(ProgressBar.text(.max, of: .max).allSatisfy { $0 == "█" })
  }
}
