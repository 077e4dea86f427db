internal import ATProtocol
internal import ArgumentParser
internal import Files
internal import Live
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// Accounts of one backup that go the same way: most as the command line has it, others as the
/// configuration has it.
struct BackupGroup {
  var accounts: [ATIdentifier]
  let destination: AccountBackup.Destination
  let options: AccountBackup.Options

  /// Sorts accounts into groups.
  ///
  /// - Parameters:
  ///   - accounts: The accounts to back up.
  ///   - common: How they are backed up by default.
  ///   - talk: How much is printed about a folder.
  ///   - destination: Where archives go by default; evaluated only if that applies to
  ///     some account.
  ///   - failed: Called with an account that cannot be backed up as it is configured.
  /// - Throws: What `destination` throws, and a configuration that cannot be read.
  static func groups(
    of accounts: [ATIdentifier], _ common: AccountBackup.Options, _ talk: CommonOptions,
    destination: () throws -> AccountBackup.Destination,
    failed: (Failure) -> Void
  ) throws -> [BackupGroup] {
    let configured = try Configuration.ofUser()?.accounts ?? []
    var rest: [ATIdentifier] = []
    var groups: [BackupGroup] = []
    for account in accounts {
      guard let own = configured.first(where: { $0.account == account }), own.isSpecial else {
        rest.append(account)
        continue
      }
      do {
        let place = try own.destination(talk) ?? destination()
        groups.append(
          BackupGroup(
            accounts: [account], destination: place,
            options: try own.options(common, isOnly: accounts.count == 1)))
      } catch let error where Failure.isOurs(error) {
        failed(Failure(error).of(account.text))
      }
    }
    guard !rest.isEmpty else { return groups }
    return [BackupGroup(accounts: rest, destination: try destination(), options: common)] + groups
  }
}

extension ConfiguredAccount {
  /// Where its archive goes; nil if that is not set here, or set on the command line.
  fileprivate func destination(_ talk: CommonOptions) -> AccountBackup.Destination? {
    guard let output, !CommandWords.has("output", "into", letter: "o") else { return nil }
    return OutputPath.isFolder(output)
      ? .folder(ArchiveFolder(told: output, talk)) : .file(FilePath(output))
  }

  /// The options with what holds for this account.
  ///
  /// - Throws: ``Failure`` if there is no app password.
  fileprivate func options(
    _ common: AccountBackup.Options, isOnly: Bool
  ) throws -> AccountBackup.Options {
    guard login else { return common }
    var options = common
    options.keepsPrivateData = common.keepsPrivateData || keepsPrivateData
    // What the command line says of a login counts for the account.
    guard common.session == nil else { return options }
    guard passwordFile != nil || isOnly else {
      throw Failure(
        "where there are several accounts, each login needs a password-file",
        hint: "line \(line) of \(Configuration.location ?? "the configuration file")",
        status: .usage)
    }
    let words = ["--login"] + (passwordFile.map { ["--password-file=\($0)"] } ?? [])
    options.session = try LoginOptions.parse(words).session()
    return options
  }
}

extension Configuration {
  /// Where archives are: where `backup` puts them without `-o`, and what accounts have of their
  /// own.
  var places: [String] {
    let common = entries.first {
      $0.section == "backup" && ["output", "into"].contains($0.setting.name)
    }
    let folder = common?.values[0] ?? "."
    // One that is not there yet is an account without an archive.
    let own = accounts.compactMap(\.output).filter {
      AtomicFile.isTaken(FilePath($0)) && !FilePath($0).starts(with: FilePath(folder))
    }
    return [folder] + own
  }
}
