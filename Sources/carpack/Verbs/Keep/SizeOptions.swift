internal import ArgumentParser
internal import Live

/// The size limit for a repository.
struct RepositorySize: ConfigurableOptions {
  static let settings = [
    Setting(name: "max-repo", kind: .text, isGeneral: true)
  ]

  @Option(
    help: ArgumentHelp(
      "The largest repository to take, decompressed: 2GiB, 500MB.", valueName: "size"))
  var maxRepo = ByteSize(AccountBackup.Options.largestRepository)
}

/// The size limit for a blob.
struct BlobSize: ConfigurableOptions {
  static let settings = [
    Setting(name: "max-blob", kind: .text, isGeneral: true)
  ]

  @Option(
    help: ArgumentHelp(
      "The largest blob to take, whatever a record says: 300MB, 1GiB.", valueName: "size"))
  var maxBlob = ByteSize(AccountBackup.Options.largestBlob)
}
