package import Archive
package import IPLD

/// A step as it went with one storage.
package struct BackupAttempt {
  /// What a caller does when something fails.
  package enum Temper: Sendable {
    /// Gives up.
    case meek
    /// Goes on with the next section, and commits what it has at the end.
    case stubborn
  }

  /// Whether the file could be opened.
  package private(set) var isOpened = false
  /// What the file was opened as; nil if nothing was committed, or it could not be opened.
  package private(set) var opened: Generation?
  /// The generations that the writer said were committed, the last one last, and how many sections
  /// it had accepted by then.
  package private(set) var acknowledged: [(generation: Generation, acceptedCount: Int)] = []
  /// The sections that the writer took without an error.
  package private(set) var accepted: [Block] = []
  /// The manifest it tried to commit.
  package private(set) var manifest: Block?
  /// How many sections of an interrupted write were taken over.
  package private(set) var adoptedCount: UInt64 = 0
  /// The errors in order; none if all went well.
  package private(set) var errors: [any Error] = []
  /// Whether the writer said at the end that everything was committed.
  package private(set) var isCommitted = false

  /// Whether it cannot be known if the last generation is committed.
  package var isUncertain: Bool {
    errors.contains { error in
      if case .commitUncertain = (error as? ArchiveError)?.reason { true } else { false }
    }
  }

  private let header: [UInt8]
  private let options: ArchiveOptions
  private let temper: Temper
  private let seal: TestSeal?

  /// Performs a step on a storage, whose archive is sealed if there is a seal.
  package init(
    _ step: BackupStep, on storage: MemoryStorage, header: [UInt8],
    options: ArchiveOptions = ArchiveOptions(workers: 1), temper: Temper = .meek,
    seal: TestSeal? = nil
  ) {
    self.header = header
    self.options = options
    self.temper = temper
    self.seal = seal
    do {
      try perform(step, storage)
    } catch {
      errors.append(error)
    }
  }

  private mutating func perform(_ step: BackupStep, _ storage: MemoryStorage) throws {
    let archive = try seal?.archive(in: storage) ?? storage
    var writer = try ArchiveWriter.open(archive, carHeader: header, options: options)
    isOpened = true
    opened = writer.generation
    adoptedCount = writer.adoptedSectionCount
    for action in step.actions {
      do {
        defer { note(writer.generation) }
        try perform(action, &writer)
      } catch {
        guard temper == .stubborn else { throw error }
        errors.append(error)
      }
    }
    manifest = try step.manifest(after: writer.generation?.head?.cid)
    if let manifest {
      defer { note(writer.generation) }
      try writer.append(manifest.cid, manifest.bytes.span)
      accepted.append(manifest)
    }
    note(try writer.commit(manifest: manifest?.cid))
    isCommitted = true
  }

  /// A checkpoint may come by itself, with any section.
  private mutating func note(_ generation: Generation?) {
    guard let generation, generation != acknowledged.last?.generation ?? opened else { return }
    acknowledged.append((generation, accepted.count))
  }

  private mutating func perform(_ action: BackupStep.Action, _ writer: inout ArchiveWriter) throws {
    switch action {
    case .flush: try writer.flush()
    case .checkpoint: try writer.checkpoint()
    case .append(let block):
      try writer.append(block.cid, block.bytes.span)
      accepted.append(block)
    case .stream(let block, let piece):
      var done = 0
      try writer.append(block.cid, length: UInt64(block.bytes.count)) { bytes in
        let next = min(done + piece, block.bytes.count)
        bytes += block.bytes[done..<next]
        done = next
      }
      accepted.append(block)
    case .breakOff(let block, let count):
      guard try writer.begin(block.cid, length: UInt64(block.bytes.count)) == nil else { return }
      try writer.take(block.bytes.span.extracting(first: count))
      try writer.cancel()
    }
  }
}
