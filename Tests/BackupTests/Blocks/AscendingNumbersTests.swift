import Testing

@testable import Backup

@Suite("Numbers that ascend, in four bytes each")
struct AscendingNumbersTests {
  @Test(
    "come back as they were put in, whatever the steps between them",
    arguments: [
      [], [0], [0, 0, 7, 7], [0xffff_ffff, 0x1_0000_0000, 0x1_0000_0000],
      [5, 0x3_0000_0001, 0x3_0000_0001, 0x7fff_0000_0000_0000, .max, .max],
      [0x2_0000_0000, 0x2_ffff_ffff, 0x3_0000_0000],
    ] as [[UInt64]])
  func roundTrip(numbers: [UInt64]) {
    var kept = AscendingNumbers()
    for number in numbers { kept.append(number) }
    #expect(kept.count == numbers.count)
    #expect(kept.last == numbers.last ?? 0)
    #expect(numbers.indices.map { kept[$0] } == numbers)
  }

  @Test("come back from among many, of which few have the same upper half")
  func manyUpperHalves() {
    var numbers: [UInt64] = []
    var number: UInt64 = 0
    for step in 0..<1000 {
      number += UInt64(step % 7) << 31 + UInt64(step)
      numbers.append(number)
    }
    var kept = AscendingNumbers()
    for number in numbers { kept.append(number) }
    #expect(numbers.indices.map { kept[$0] } == numbers)
  }

  @Test("may not descend")
  func descending() async {
    await #expect(processExitsWith: .failure) {
      var kept = AscendingNumbers()
      kept.append(0x1_0000_0000)
      kept.append(0xffff_ffff)
    }
  }
}
