import Archive
import ArchiveTestSupport
import TestSupport

/// What ends a verb before it is done.
struct SequenceInterruption: CustomStringConvertible {
  enum Kind: String, CaseIterable {
    case powerCut = "a power cut"
    case kill = "a kill"
    case fullDisk = "a full disk"
  }

  let kind: Kind
  /// The operation from which on nothing is done any more, or how much the file may grow.
  private let number: Int
  private let part: Double
  private let loss: PowerLoss

  /// An interruption of any kind, at any moment of a short verb.
  init(_ random: inout SeededGenerator) {
    kind = Kind.allCases[Int(random.next() % 3)]
    let most = [4, 12, 40][Int(random.next() % 3)]
    number = 1 + Int(random.next() % UInt64(most))
    part = random.next() % 2 == 0 ? 0 : Double(random.next() % 100) / 100
    loss = PowerLoss(using: &random)
  }

  /// The fault of a storage that holds this many bytes.
  func conditions(_ length: Int) -> MemoryStorage.Conditions {
    switch kind {
    case .fullDisk: .init(capacity: UInt64(length + (number - 1) * (number - 1) * 16))
    case .powerCut: .init([StorageFault(number, .forEver, part: part)])
    // Each write of a process that is killed is done, or was not begun.
    case .kill: .init([StorageFault(number, .forEver)])
    }
  }

  /// What the file holds then.
  func bytes(in storage: MemoryStorage) -> [UInt8] {
    kind == .powerCut ? storage.bytes(after: loss) : storage.bytes
  }

  /// What happens to a new file, which has no name yet.
  func storage(over storage: any ArchiveStorage) -> InterruptedStorage {
    InterruptedStorage(storage, from: kind == .fullDisk ? max(number, 3) : number, of: kind)
  }

  var description: String {
    switch kind {
    case .powerCut: "a power cut at operation \(number) (\(loss))"
    case .kill: "a kill at operation \(number)"
    case .fullDisk: "a full disk (\(number))"
    }
  }
}
