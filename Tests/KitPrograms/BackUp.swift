import CarpackKit
import SystemPackage

/// Backs an account up into a folder, and returns whether everything is there.
func backUp(
  _ account: ATIdentifier, into folder: FilePath,
  with network: NetworkOptions = NetworkOptions(userAgent: "example/1.0 (https://example.com)")
) async throws -> Bool {
  let options = AccountBackup.Options(tool: "example 1.0")
  let backup = AccountBackup(network: try Network(network), options: options) { event in
    guard case .progress(let now) = event else { return }
    print("\(now.stage): \(now.bytes) bytes, \(now.blobsDone) of \(now.blobsTotal) blobs")
  }
  let report = try await backup.run(account, into: .folder(ArchiveFolder(folder)))
  return report.outcome != .incomplete
}
