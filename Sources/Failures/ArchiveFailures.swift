package import Archive
package import Files
internal import LibC
package import Snapshots
package import SystemPackage
package import Terminal

extension ArchiveError: FormatError {
  package var explanation: Explanation {
    switch reason {
    case .system(let operation, let code):
      (ExitStatus(ofSystem: code, writing: !operation.hasPrefix("open")), nil)
    case .alreadyExists, .locked, .begunOtherwise: (.cannotCreate, nil)
    case .unsupportedVersion, .unknownFeatures:
      (
        .failure,
        "a newer carpack wrote the file; use that version, or decompress the file with zstd: it holds a CAR"
      )
    case .notAnArchive:
      (.damaged, "archives are made by \"carpack backup\" and \"carpack pack\"")
    case .noFooter:
      (.damaged, "put back a copy, or move the file away and run the command again")
    case .noErasureLibrary:
      (.failure, "install ISA-L: libisal2 on Debian, isa-l in Homebrew")
    case .writerFailed:
      (.ioError, "what has arrived is kept; free some space and run the same command again")
    case .damagedIndex: (.damaged, "\"carpack repair\" rebuilds the index from the data")
    case .damagedFrame, .damagedSection:
      (
        .damaged,
        "\"carpack verify\" says what is lost; \"carpack repair -o NEW\" makes a new archive of everything else"
      )
    case .furtherArchive:
      (.damaged, "\"carpack repair -o NEW\" makes one archive of all archives in the file")
    case .damagedFooter:
      (.damaged, "run \"carpack repair\" before you append anything")
    default: (ExitStatus(faultKind), nil)
    }
  }
}

extension BackupError: Explained {
  package var explanation: Explanation {
    switch self {
    case .system(let operation, let code):
      (
        ExitStatus(ofSystem: code, writing: !operation.hasPrefix("read")),
        code == EEXIST ? "use --force to replace it, or choose another name" : nil
      )
    case .carsInFolder(_, let names) where !names.isEmpty:
      (.usage, "name the one to pack, and the folder with --blobs")
    case .archiveOfOther:
      (.cannotCreate, "--into, instead of -o, puts several accounts into one archive")
    case .fileDiffers: (.cannotCreate, "use --overwrite to replace it")
    case .inTheWay, .noFolder: (.cannotCreate, nil)
    case .busy: (.temporary, nil)
    case .tooLarge:
      (.refused, "if you trust the archive and have the space, use --allow-large")
    case .repositoryTooLarge:
      (.refused, "if the account is expected to be this large, use --max-repo SIZE")
    case .blobTooLarge:
      (.refused, "if the blob is expected to be this large, use --max-blob SIZE")
    case .notAFile: (.cannotCreate, "choose another name for the output")
    case .leftover:
      (
        .cannotCreate,
        "run the interrupted command again to finish it, or choose another name for the output; if the file is not needed, remove it"
      )
    case .damagedArchive:
      (
        .damaged,
        "nothing was changed; \"carpack repair\" saves what can be saved, and with --from COPY takes the rest from a copy"
      )
    case .unfinishedArchive:
      (
        .damaged,
        "nothing was changed; wait for the program that writes to it, or run \"carpack repair\" to keep the intact part"
      )
    case .notFound: (.noInput, "\"carpack ls\" lists the content")
    case .notInRemains:
      (
        .damaged,
        "\"carpack verify\" says what is lost; \"carpack find\" searches all snapshots that are left"
      )
    case .notInPart: (.incomplete, nil)
    case .notMissing:
      (.noInput, "nothing was changed; \"carpack missing\" lists what is missing")
    case .malformedSelector: (.usage, nil)
    case .ambiguousSelector: (.usage, "use a longer prefix, or name one by collection/rkey")
    case .incompleteRepository:
      (
        .incomplete,
        "\"carpack fetch repo\" downloads what the server has, and \"carpack pack\" packs the incomplete repository"
      )
    case .accountUnavailable(_, let why, _): (.unavailable, why.hint)
    case .noServer, .notARepository: (.unavailable, nil)
    case .unusableServer: (.refused, "if it is your own server, name it with --pds")
    case .lastSnapshot: (.usage, "an account keeps at least one snapshot")
    case .unclaimedHandle:
      (.notGenuine, "if the account is yours, use its DID, or name its server with --pds")
    default: (ExitStatus(faultKind), nil)
    }
  }
}

extension BackupError.Unavailability {
  /// What to do about it.
  var hint: String {
    switch self {
    case .unknown:
      "an archive keeps what it has; \"carpack resolve\" says on which server the account is"
    case .deactivated:
      "if the account is yours, log in with --login; an archive keeps what it has"
    case .takendown, .suspended:
      "if the account is yours, log in with --login, or ask the server's operator; an archive keeps what it has"
    }
  }
}

extension SelectionError: Explained {
  package var explanation: Explanation {
    let listed = "\"carpack log\" lists the snapshots"
    return switch self {
    case .malformedSelector: (.usage, listed)
    case .noSuchSnapshot, .noSuchAccount, .onlySnapshot: (.noInput, listed)
    case .ambiguousSnapshot: (.usage, "use a longer prefix; \(listed)")
    case .severalAccounts: (.usage, "choose one with --account")
    case .ambiguousAccount: (.usage, "choose one by its DID")
    }
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
  package var explanation: Explanation { (ExitStatus(ofSystem: rawValue, writing: true), nil) }
}
