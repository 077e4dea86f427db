package import IPLD
package import TestSupport

/// What a writer is asked to do between two commits, as the suites that disturb it have it done.
package struct BackupStep: Sendable {
  /// One thing that is asked.
  package enum Action: Sendable {
    /// A section at once.
    case append(Block)
    /// A section in pieces.
    case stream(Block, piece: Int)
    /// A section of which this many bytes come, and then no more.
    case breakOff(Block, after: Int)
    /// Everything is handed to the storage.
    case flush
    /// Everything so far is made to count.
    case checkpoint
  }

  /// What is asked, in order.
  package var actions: [Action] = []
  /// What makes the manifest that is committed at the end unlike any other; nil to commit without
  /// one.
  package var nonce: UInt64?

  /// A step of these actions.
  package init(_ actions: [Action] = [], nonce: UInt64? = nil) {
    self.actions = actions
    self.nonce = nonce
  }

  /// The sections it appends, those that break off and the manifest left out.
  package var sections: [Block] {
    actions.compactMap { action in
      switch action {
      case .append(let block), .stream(let block, _): block
      case .breakOff, .flush, .checkpoint: nil
      }
    }
  }

  /// The manifest, which names the one before it.
  package func manifest(after head: CID?) throws -> Block? {
    guard let nonce else { return nil }
    let bytes = try DAGCBOREncoder.encode(
      .map([
        "carpack": .integer(1), "car": .map([:]), "commit": .link(Block.section([]).cid),
        "prev": head.map { .link($0) } ?? .null, "nonce": .integer(Int128(nonce)),
      ]))
    return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
  }

  /// A step in which everything happens that can: several packs, sections of every size, also ones
  /// that exist already, one that breaks off, a manifest.
  ///
  /// - Parameters:
  ///   - random: What it is made of.
  ///   - large: The length of the longest body; 64 KiB and more make it a large section, over 4 MiB
  ///     one of several frames.
  ///   - old: Sections that may be there already.
  ///   - hasCheckpoints: Whether there are checkpoints between its packs.
  package static func full(
    using random: inout SeededGenerator, large: Int = 70_000, old: [Block] = [],
    hasCheckpoints: Bool = false
  ) -> BackupStep {
    var step = BackupStep()
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      for _ in 0..<Int.random(in: 0...6, using: &random) {
        let length = Int.random(in: 0...900, using: &random)
        step.actions.append(.append(.section(random.text(length) + random.bytes(8))))
        if let block = old.randomElement(using: &random) { step.actions.append(.append(block)) }
      }
      step.actions.append(hasCheckpoints ? .checkpoint : .flush)
    }
    step.actions.append(.breakOff(.section(random.bytes(large)), after: large * 2 / 3))
    step.actions.append(.stream(.section(random.bytes(large)), piece: 1 << 20))
    if hasCheckpoints { step.actions.append(.checkpoint) }
    step.actions.append(.append(.section(random.text(66_000))))
    step.actions.append(.append(.section(random.bytes(300))))
    step.nonce = random.nonce()
    return step
  }

  /// A step that appends next to nothing.
  package static func tiny(using random: inout SeededGenerator) -> BackupStep {
    BackupStep(
      (0..<Int.random(in: 0...3, using: &random)).map { _ in
        .append(.section(random.bytes(Int.random(in: 0...99, using: &random))))
      }, nonce: random.nonce())
  }

  /// The same once more, as an interrupted backup is repeated: at another moment, and so with
  /// another manifest.
  package func again(using random: inout SeededGenerator) -> BackupStep {
    BackupStep(actions, nonce: nonce == nil ? nil : random.nonce())
  }
}

extension Block {
  /// A raw block of these bytes.
  package static func section(_ bytes: [UInt8]) -> Block {
    Block(cid: CID(codec: .raw, hashing: bytes.span), bytes: bytes)
  }
}

extension SeededGenerator {
  /// A number that DAG-CBOR has room for.
  fileprivate mutating func nonce() -> UInt64 { next() >> 1 }
}
