internal import Archive
internal import Keys
internal import Reports
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// A folder of archives that was named, of which a person is told what happens to it.
extension ArchiveFolder {
  convenience init(told path: String) {
    self.init(FilePath(path)) { Console.say(.note, $0.sentence) }
  }
}

extension ArchiveFolder.Event {
  fileprivate var sentence: String {
    switch self {
    case .unopened(let file, let error):
      "\(error.of(file.string)), so it was skipped; if it is this account's, give its key: --age-identity FILE, or \(ArchiveKeys.passphraseVariable)"
    }
  }
}
