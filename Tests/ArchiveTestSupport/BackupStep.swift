public import IPLD
public import TestSupport

/// What a writer is asked to do between two commits, as the suites that disturb it have it done.
public struct BackupStep: Sendable {
  /// One thing that is asked.
  public enum Action: Sendable {
    /// A section at once.
    case append(Block)
    /// A section in pieces.
    case stream(Block, piece: Int)
    /// A section of which so many bytes come, and then no more.
    case breakOff(Block, after: Int)
    /// Everything is handed to the storage.
    case flush
  }

  /// What is asked, in order.
  public var actions: [Action] = []
  /// The manifest that is committed at the end; nil to commit without one.
  public var manifest: Block?

  /// A step of these actions.
  public init(_ actions: [Action] = [], manifest: Block? = nil) {
    self.actions = actions
    self.manifest = manifest
  }

  /// The sections it appends, those that broke off left out, the manifest last.
  public var sections: [Block] {
    actions.compactMap { action in
      switch action {
      case .append(let block), .stream(let block, _): block
      case .breakOff, .flush: nil
      }
    } + (manifest.map { [$0] } ?? [])
  }

  /// A step in which everything happens that can: several packs, sections of every size, one that breaks off, a manifest.
  ///
  /// - Parameters:
  ///   - random: What it is made of.
  ///   - large: The length of the longest body; 64 KiB and more make it a large section, over 4 MiB one of several frames.
  public static func small(using random: inout SeededGenerator, large: Int = 70_000) -> BackupStep {
    var step = BackupStep()
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      for _ in 0..<Int.random(in: 0...6, using: &random) {
        let length = Int.random(in: 0...900, using: &random)
        step.actions.append(.append(.section(random.text(length) + random.bytes(8))))
      }
      step.actions.append(.flush)
    }
    let body = random.bytes(large)
    step.actions.append(.breakOff(.section(random.bytes(large)), after: large * 2 / 3))
    step.actions.append(.stream(.section(body), piece: 1 << 20))
    step.actions.append(.append(.section(random.text(70_000))))
    step.actions.append(.append(.section(random.bytes(300))))
    let manifest = random.text(150) + random.bytes(8)
    step.manifest = Block(cid: CID(codec: .dagCBOR, hashing: manifest.span), bytes: manifest)
    return step
  }
}

extension Block {
  /// A raw block of these bytes.
  public static func section(_ bytes: [UInt8]) -> Block {
    Block(cid: CID(codec: .raw, hashing: bytes.span), bytes: bytes)
  }
}
