internal import Archive
internal import Files
internal import LibC
internal import Snapshots
internal import SystemPackage
internal import Terminal

extension ArchiveError: FormatError {
  var explanation: Explanation {
    let status: ExitStatus
    var hint: String?
    switch reason {
    case .system(let operation, let code):
      status = ExitStatus(ofSystem: code, writing: !operation.hasPrefix("open"))
    case .alreadyExists, .locked, .begunOtherwise: status = .cannotCreate
    case .unsupportedVersion, .unknownFeatures:
      status = .failure
      hint = "a newer carpack wrote the file; use that, or unpack it with zstd: it holds a CAR"
    case .notAnArchive:
      status = .damaged
      hint = "archives are made by \"carpack backup\" and \"carpack pack\""
    case .contentMismatch, .lengthMismatch: status = .refused
    case .writerFailed:
      status = .ioError
      hint = "what has arrived is kept; once there is room, the same command goes on from here"
    case .commitUncertain, .changedMeanwhile: status = .ioError
    case .damagedIndex:
      status = .damaged
      hint = "\"carpack repair\" makes the index again from the data"
    case .damagedFrame, .damagedSection:
      status = .damaged
      hint =
        "\"carpack verify\" says what is lost; \"carpack repair -o NEW\" makes a new archive of everything else"
    case .damagedFooter:
      status = .damaged
      hint = "\"carpack repair\" puts right what can be, before anything is appended"
    default: status = .damaged
    }
    return (status, hint)
  }
}

extension BackupError: Explained {
  var explanation: Explanation {
    var hint: String?
    let status: ExitStatus
    switch self {
    case .system(let operation, let code):
      status = ExitStatus(ofSystem: code, writing: !operation.hasPrefix("read"))
      if code == EEXIST { hint = "use --force to replace it, or choose another name" }
    case .malformedRepository, .carNotExact, .malformedDocument: status = .damaged
    case .changedMeanwhile, .copyFailed: status = .ioError
    case .carsInFolder(_, let names):
      status = names.isEmpty ? .noInput : .usage
      if !names.isEmpty { hint = "name the one to pack, and the folder with --blobs" }
    case .otherAccount, .hostileName: status = .refused
    case .archiveOfOther:
      status = .cannotCreate
      hint = "--into, instead of -o, puts several accounts into one archive"
    case .fileDiffers:
      status = .cannotCreate
      hint = "use --overwrite to replace it"
    case .inTheWay: status = .cannotCreate
    case .busy: status = .temporary
    case .tooLarge:
      status = .damaged
      hint = "if you trust the archive and have the room, --allow-large puts it together"
    case .repositoryTooLarge:
      status = .refused
      hint = "if the account is known to have so much, --max-repo SIZE takes it"
    case .blobTooLarge:
      status = .refused
      hint = "if the blob is known to be so large, --max-blob SIZE takes it"
    case .notAFile:
      status = .cannotCreate
      hint = "choose another name for the output"
    case .leftover:
      status = .cannotCreate
      hint =
        "run the interrupted command again to finish it, or choose another name for the output; if the file is not needed, remove it"
    case .damagedArchive:
      status = .damaged
      hint = "nothing was changed; \"carpack repair\" saves what can be saved"
    case .unfinishedArchive:
      status = .damaged
      hint =
        "nothing was changed; wait for the program that writes to it, or let \"carpack repair\" take over what is whole"
    case .notFound:
      status = .noInput
      hint = "\"carpack ls\" shows what there is"
    case .notInRemains:
      status = .damaged
      hint =
        "\"carpack verify\" says what is lost; \"carpack find\" searches all snapshots that are left"
    case .notInPart: status = .incomplete
    case .notMissing:
      status = .noInput
      hint = "nothing was changed; \"carpack missing\" lists what is missing"
    case .malformedSelector: status = .usage
    case .ambiguousSelector:
      status = .usage
      hint = "give more of it"
    case .notGenuine: status = .notGenuine
    case .incompleteRepository:
      status = .incomplete
      hint =
        "\"carpack fetch repo\" gets what there is, and \"carpack pack\" packs it, incomplete as it is"
    case .accountUnavailable:
      status = .unavailable
      hint = "if the account is yours, --login asks as its owner"
    case .noServer, .notARepository: status = .unavailable
    case .endlessList: status = .incomplete
    case .unusableServer:
      status = .refused
      hint = "a server of your own can be named with --pds"
    case .lastSnapshot:
      status = .usage
      hint = "an account keeps one snapshot at least"
    case .unclaimedHandle:
      status = .notGenuine
      hint = "if the account is yours, name it by its DID, or its server with --pds"
    }
    return (status, hint)
  }
}

extension SelectionError: Explained {
  var explanation: Explanation {
    let listed = "\"carpack log\" lists the snapshots"
    let (status, hint): (ExitStatus, String) =
      switch self {
      case .malformedSelector: (.usage, listed)
      case .noSuchSnapshot, .noSuchAccount, .onlySnapshot: (.noInput, listed)
      case .ambiguousSnapshot: (.usage, "give more of it; \(listed)")
      case .severalAccounts:
        (.usage, "choose one with --account, or name single things by at://")
      case .ambiguousAccount: (.usage, "choose one by its DID")
      }
    return (status, hint)
  }
}

extension ExitStatus {
  /// The status for an error of the system (`errno`).
  init(ofSystem code: CInt, writing: Bool) {
    self =
      switch code {
      case EEXIST: .cannotCreate
      case ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, EROFS, ELOOP, ENAMETOOLONG:
        writing ? .cannotCreate : .noInput
      default: .ioError
      }
  }
}

extension Errno: Explained {
  var explanation: Explanation { (ExitStatus(ofSystem: rawValue, writing: true), nil) }
}
