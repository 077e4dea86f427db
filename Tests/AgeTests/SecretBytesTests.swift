import Age
import Foundation
import Testing

@Suite struct `Secret bytes` {
  @Test func `say nothing of what they hold`() {
    let secret = secret("hunter2")
    var dumped = ""
    dump(secret, to: &dumped)
    #expect("\(secret)" == "secret")
    #expect(String(reflecting: secret) == "secret")
    #expect(dumped == "- secret #0\n")
    #expect(Mirror(reflecting: secret).children.isEmpty)
  }

  @Test func `are equal if all bytes are`() {
    #expect(secret("hunter2") == secret("hunter2"))
    #expect(secret("hunter2") != secret("hunter3"))
    #expect(secret("hunter2") != secret("hunter"))
    #expect(secret("") == secret(""))
  }

  @Test(arguments: [0, 1, 32, 128, 129, 4096, 4097, 100_000])
  func `begin as zero, also where another secret was`(_ count: Int) {
    for _ in 0..<10 {
      let secret = unsafe SecretBytes(count: count) { target in
        let isZero = unsafe target.allSatisfy { $0 == 0 }
        #expect(isZero)
        unsafe target.initializeMemory(as: UInt8.self, repeating: 0xff)
      }
      #expect(secret.count == count)
      #expect(secret.withBytes { bytes in bytes.indices.allSatisfy { bytes[$0] == 0xff } })
    }
  }

  @Test func `do not share memory, on many threads`() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          var kept: [SecretBytes] = []
          for round in 0..<2000 {
            let value = UInt8(truncatingIfNeeded: task &* 31 &+ round)
            kept.append(
              unsafe SecretBytes(count: 64) {
                unsafe _ = $0.initializeMemory(as: UInt8.self, repeating: value)
              })
            if kept.count > 100 { kept.removeFirst(50) }
            let last = try #require(kept.last)
            try #require(last.exposed == [UInt8](repeating: value, count: 64))
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func `are random when asked for, and other ones each time`() throws {
    let secrets = try (0..<100).map { _ in try SecretBytes.random(count: 32).exposed }
    #expect(Set(secrets).count == 100)
  }

  @Test func `survive an error of what fills them`() {
    #expect(throws: AgeError.noRecipient) {
      try unsafe SecretBytes(count: 32) { _ throws(AgeError) in throw AgeError.noRecipient }
    }
  }

  #if os(Linux)
    @Test(arguments: [32, 100_000])
    func `are left out of core dumps`(_ count: Int) throws {
      let secret = try SecretBytes.random(count: count)
      let address = unsafe secret.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
      let process = ProcessInfo.processInfo.processIdentifier
      let maps = String(
        decoding: try run(["cat", "/proc/\(process)/smaps"]).output, as: UTF8.self)
      var isInside = false
      var flags: [Substring] = []
      for line in maps.split(separator: "\n") {
        let words = line.split(separator: " ")
        let bounds = (words.first ?? "").split(separator: "-").compactMap { UInt($0, radix: 16) }
        if bounds.count == 2 { isInside = (bounds[0]..<bounds[1]).contains(address) }
        if isInside, words.first == "VmFlags:" { flags = words }
      }
      #expect(flags.contains("dd"))
      extendLifetime(secret)
    }
  #endif
}
