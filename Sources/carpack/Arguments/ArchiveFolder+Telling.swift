internal import Archive
internal import Keys
internal import Reports
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// A folder of archives, whose events are printed.
extension ArchiveFolder {
  convenience init(told path: String, _ common: CommonOptions) {
    self.init(FilePath(path)) { [quiet = common.quiet] event in
      switch event {
      case .made(let path): if !quiet { Console.say(.note, "created the folder \(path)") }
      case .unopened(let file, let error):
        let need =
          error is any StorageLayerError
          ? "give its key: --age-identity FILE, or \(ArchiveKeys.passphraseVariable)"
          : "make it readable"
        Console.say(
          .note,
          "\(error.of(file.string)), so it was skipped; if it is this account's, \(need)")
      }
    }
  }
}
