import CarpackKit
import SystemPackage

/// Backs an account up into a folder, and answers whether everything is there.
func backUp(
  _ account: ATIdentifier, into folder: FilePath, over network: Network,
  options: AccountBackup.Options
) async throws -> Bool {
  let backup = AccountBackup(network: network, options: options) { event in print(event) }
  let report = try await backup.run(account, into: .folder(ArchiveFolder(folder)))
  return report.outcome != .incomplete
}
