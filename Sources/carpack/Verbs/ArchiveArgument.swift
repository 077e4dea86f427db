internal import Archive
internal import ArgumentParser
internal import Backup
internal import IPLD

/// The archive that a verb reads.
struct ArchiveArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The archive; \"-\" for standard input.", valueName: "file"),
    completion: .file(extensions: ["zst"]))
  var file: String

  /// An archive that has been opened, and the file it lies in.
  final class Opened {
    let reader: ArchiveReader
    let input: InputFile
    private var isSalvaged = false

    init(reader: ArchiveReader, input: InputFile) {
      self.reader = reader
      self.input = input
    }

    /// The newest snapshot; of an archive that has lost its manifest, what is left.
    func snapshot() throws -> ArchivedSnapshot {
      do {
        return try ArchivedSnapshot.newest(in: reader)
      } catch let error as SnapshotError where error == .noSnapshot && reader.recovery != nil {
        return try salvage()
      } catch SnapshotError.blockMissing {
        return try salvage()
      } catch let error as ArchiveError where error.isDamage {
        return try salvage()
      }
    }

    private func salvage() throws -> ArchivedSnapshot {
      isSalvaged = true
      return try ArchivedSnapshot.salvaged(from: reader)
    }

    /// 11 if opening the file took a repair in memory or something is lost, 0 otherwise; says what was done.
    var status: ExitStatus {
      if isSalvaged {
        Console.say(
          "carpack: \(Console.red("damaged:")) \(input.name): its manifest is lost; this is what could be found out without it"
        )
      }
      let repaired = repairStatus
      return isSalvaged ? .damaged : repaired
    }

    private var repairStatus: ExitStatus {
      guard let recovery = reader.recovery, let rebuild = recovery.rebuild else { return .success }
      let what =
        switch rebuild {
        case .noFooter: "its end is lost: no generation was committed"
        case .damagedIndex: "its index is damaged"
        }
      Console.say(
        "carpack: \(Console.red("damaged:")) \(input.name): \(what); it was read from the data itself. \"carpack verify\" says what is lost"
      )
      return .damaged
    }
  }

  /// Opens it.
  func open() throws -> Opened {
    let input = try InputFile(file)
    try refuseCAR(input)
    let opened = Opened(reader: try ArchiveReader(path: input.path), input: input)
    if let tail = opened.reader.recovery?.interruptedTail, tail > 0,
      opened.reader.generation.number > 0
    {
      Console.say(
        "carpack: \(Console.yellow("warning:")) \(input.name) ends in \(Quantity.bytes(tail)) of a write that was not finished; they are ignored"
      )
    }
    return opened
  }

  /// A CAR is recognised, and its owner told which verb to use.
  private func refuseCAR(_ input: InputFile) throws {
    let isCAR = input.withBytes { bytes in
      do throws(CARError) {
        let payload = try CARVersion2.payload(of: bytes)
        _ = try CARHeader(bytes, at: payload.lowerBound)
        return true
      } catch {
        return false
      }
    }
    guard isCAR else { return }
    throw Failure(
      "\(input.name) is a CAR, not a carpack archive",
      hint: "\"carpack inspect \(input.name)\" checks it, \"carpack pack\" makes an archive of it",
      status: .usage)
  }
}

extension ArchiveError {
  /// Whether it says that bytes are not what they were, and not that the file is another kind of thing.
  var isDamage: Bool {
    switch reason {
    case .damagedFrame, .damagedIndex, .damagedSection, .malformedFrame, .malformedSection,
      .lostOrdinal, .truncated:
      true
    default: false
    }
  }
}
