internal import Archive
internal import ArgumentParser
internal import Backup
internal import IPLD

/// How much an archive may hold.
struct LimitOptions: ParsableArguments {
  @Flag(
    help:
      "Read an archive that holds far more than its size suggests, and put together CARs that are much larger than it."
  )
  var allowLarge = false

  var limits: ReadLimits { ReadLimits(allowsLarge: allowLarge) }
}

/// The archive that a verb reads.
struct ArchiveArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The archive; \"-\" for standard input.", valueName: "file"),
    completion: .file(extensions: ["zst"]))
  var file: String

  @OptionGroup var limits: LimitOptions

  /// Opens it.
  func open() throws -> OpenedArchive {
    let input = try InputFile(file)
    try refuseCAR(input)
    let reader = try ArchiveReader(path: input.path, limits: limits.limits)
    try reader.refuseTooMuchContent()
    return OpenedArchive(reader: reader, input: input)
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
