import Testing

@testable import Repository

@Suite struct `Numbers that ascend, in four bytes each` {
  private func kept(_ numbers: [UInt64]) -> AscendingNumbers {
    var kept = AscendingNumbers()
    for number in numbers { kept.append(number) }
    return kept
  }

  @Test(arguments: [
    [], [0], [0, 0, 7, 7], [0xffff_ffff, 0x1_0000_0000, 0x1_0000_0000],
    [5, 0x3_0000_0001, 0x3_0000_0001, 0x7fff_0000_0000_0000, .max, .max],
    [0x2_0000_0000, 0x2_ffff_ffff, 0x3_0000_0000],
  ])
  func `come back as they were put in, whatever the steps between them`(numbers: [UInt64]) {
    let kept = kept(numbers)
    #expect(kept.count == numbers.count)
    #expect(kept.last == numbers.last)
    #expect(numbers.indices.map { kept[$0] } == numbers)
  }

  @Test func `come back from among many, of which few have the same upper half`() {
    var numbers: [UInt64] = []
    var number: UInt64 = 0
    for step in 0..<1000 {
      number += UInt64(step % 7) << 31 + UInt64(step)
      numbers.append(number)
    }
    let kept = kept(numbers)
    #expect(numbers.indices.map { kept[$0] } == numbers)
  }

  @Test func `may not descend`() async {
    await #expect(processExitsWith: .failure) {
      var kept = AscendingNumbers()
      kept.append(0x1_0000_0000)
      kept.append(0xffff_ffff)
    }
  }
}
