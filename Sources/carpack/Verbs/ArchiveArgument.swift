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

  @Flag(
    help:
      "Put a CAR together even if it is much larger than the archive: by default, 16 times its CAR stream and 64 MiB are the most."
  )
  var allowLarge = false

  /// A snapshot of the archive, with the leave that was given.
  func limited(_ snapshot: ArchivedSnapshot) -> ArchivedSnapshot {
    var snapshot = snapshot
    snapshot.allowsLarge = allowLarge
    return snapshot
  }

  /// Opens it.
  func open() throws -> OpenedArchive {
    let input = try InputFile(file)
    try refuseCAR(input)
    let opened = OpenedArchive(reader: try ArchiveReader(path: input.path), input: input)
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
