internal import TestSupport

/// What is durable of a file, and what was done to it since.
struct UnsyncedChanges: Sendable {
  /// One change.
  private enum Change {
    case write([UInt8], at: Int)
    case truncation(to: Int)
  }

  /// What a disk writes whole or not at all.
  static let sector = 512

  private let durable: [UInt8]
  private var changes: [Change] = []

  init(durable: [UInt8]) {
    self.durable = durable
  }

  mutating func write(_ bytes: ArraySlice<UInt8>, at offset: Int) {
    changes.append(.write(Array(bytes), at: offset))
  }

  mutating func truncate(to size: Int) { changes.append(.truncation(to: size)) }

  /// What there is after a loss of power.
  func bytes(after loss: PowerLoss) -> [UInt8] {
    if loss.kind == .dropsAll { return durable }
    var random = SeededGenerator(seed: loss.seed)
    let lengths = lengths
    let longest = lengths.max() ?? durable.count
    var disk = durable + filling(longest - durable.count, using: &random)
    var file = durable
    let choice = Choice(loss.kind, changes: changes.count, sectors: sectorCount, using: &random)
    var sectors = 0
    for (number, change) in changes.enumerated() {
      switch change {
      case .truncation(let size): file.removeLast(file.count - size)
      case .write(let bytes, let offset):
        let end = offset + bytes.count
        file.replaceSubrange(offset..<min(end, file.count), with: bytes)
        // A sector reaches the disk as the file has it at that moment, the bytes of earlier writes
        // included.
        for start in stride(from: offset / Self.sector * Self.sector, to: end, by: Self.sector) {
          defer { sectors += 1 }
          guard choice.keeps(change: number, sector: sectors, using: &random) else { continue }
          let range = start..<min(start + Self.sector, file.count)
          disk.replaceSubrange(range, with: file[range])
        }
      }
    }
    return Array(disk.prefix(length(after: loss.kind, lengths, using: &random)))
  }

  /// Every length the file had.
  private var lengths: [Int] {
    var lengths = [durable.count]
    for change in changes {
      switch change {
      case .truncation(let size): lengths.append(size)
      // What is written in the middle makes nothing longer or shorter.
      case .write(let bytes, let offset):
        lengths.append(max(lengths.last ?? 0, offset + bytes.count))
      }
    }
    return lengths
  }

  /// How many times a sector was written.
  private var sectorCount: Int {
    changes.reduce(0) { count, change in
      guard case .write(let bytes, let offset) = change, !bytes.isEmpty else { return count }
      return count + (offset + bytes.count - 1) / Self.sector - offset / Self.sector + 1
    }
  }

  private func length(
    after kind: PowerLoss.Kind, _ lengths: [Int], using random: inout SeededGenerator
  ) -> Int {
    let last = lengths[lengths.count - 1]
    guard kind != .keepsAll else { return last }
    switch random.next() % 4 {
    case 0: return lengths.randomElement(using: &random) ?? last
    case 1:
      return Int.random(in: (lengths.min() ?? last)...(lengths.max() ?? last), using: &random)
    // What is lost is worst to tell where the length says that all is there.
    default: return last
    }
  }

  /// What is in the file where it was made longer and nothing was written.
  private func filling(_ count: Int, using random: inout SeededGenerator) -> [UInt8] {
    switch random.next() % 4 {
    case 0: random.bytes(count)
    // What another file left there, and that may have been an archive.
    case 1: Array((durable + durable.reversed() + [0]).cycled(count))
    default: [UInt8](repeating: 0, count: count)
    }
  }
}

/// Which sectors of which changes reach the disk.
private struct Choice {
  let kind: PowerLoss.Kind
  /// The change, or the sector, that is not like the others.
  let odd: Int
  let last: Int
  let probability: Double
  let keptChanges: [Bool]

  init(
    _ kind: PowerLoss.Kind, changes: Int, sectors: Int, using random: inout SeededGenerator
  ) {
    self.kind = kind
    last = changes - 1
    let count = kind == .dropsOneSector ? sectors : changes
    // The last ones are the index and the footer, where an error counts most.
    let isNearEnd = random.next() % 2 == 0
    odd = Int.random(in: (isNearEnd ? max(0, count - 3) : 0)...max(0, count - 1), using: &random)
    probability = [0.02, 0.2, 0.5, 0.8, 0.98].randomElement(using: &random) ?? 0.5
    let share = probability
    keptChanges = (0..<changes).map { _ in Double.random(in: 0..<1, using: &random) < share }
  }

  func keeps(change: Int, sector: Int, using random: inout SeededGenerator) -> Bool {
    func isLucky() -> Bool { Double.random(in: 0..<1, using: &random) < probability }
    switch kind {
    case .keepsAll: return true
    case .dropsAll: return false
    case .tearsOne: return change < odd || (change == odd && isLucky())
    case .reorders: return keptChanges[change]
    case .scatters: return isLucky()
    case .dropsOneSector: return sector != odd
    case .keepsLast: return change == last
    }
  }
}

extension Array {
  /// So many elements, beginning again and again.
  fileprivate func cycled(_ count: Int) -> [Element] {
    var result: [Element] = []
    result.reserveCapacity(count)
    while result.count < count { result.append(contentsOf: prefix(count - result.count)) }
    return result
  }
}
