internal import ArgumentParser
internal import HTTP
internal import ObjectStore
internal import Remote
internal import SystemPackage
internal import Terminal

/// How to reach object stores, and web servers that have archives.
struct StoreArguments: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The object store for s3:// addresses, instead of Amazon's (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL).",
      valueName: "url"))
  var endpointURL: String?

  @Option(
    help: ArgumentHelp(
      "The store's region (AWS_REGION, AWS_DEFAULT_REGION; default: us-east-1).", valueName: "name")
  )
  var region: String?

  @Option(
    help: ArgumentHelp(
      "The profile in Amazon's files that has the keys (AWS_PROFILE).", valueName: "name"))
  var profile: String?

  @Flag(help: "Send unsigned requests, for a bucket that everyone may read.")
  var unsigned = false

  @Flag(
    inversion: .prefixedNo,
    help:
      "Put the bucket into the path of requests, not the host name. This is the default for stores other than Amazon's."
  )
  var pathStyle: Bool?

  /// The options, from here, the environment or Amazon's files.
  var options: StoreOptions {
    var options = StoreOptions { Host.environment($0)?.value }
    options.endpoint = endpointURL
    options.region = region
    options.profile = profile
    options.isUnsigned = unsigned
    options.namesBucketInPath = pathStyle
    return options
  }
}

extension Host {
  /// The folder for caches between runs.
  static var cacheFolder: FilePath { RemoteArchive.cacheFolder { environment($0)?.value } }
}

extension StoreArguments: ConfigurableOptions {
  static let settings = [
    Setting(
      name: "endpoint-url", kind: .text, isGeneral: true,
      variables: ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]),
    Setting(
      name: "region", kind: .text, isGeneral: true, variables: ["AWS_REGION", "AWS_DEFAULT_REGION"]),
    Setting(name: "profile", kind: .text, isGeneral: true, variables: ["AWS_PROFILE"]),
    Setting(name: "unsigned", kind: .flag, isGeneral: true),
    Setting(name: "path-style", kind: .choice, isGeneral: true, rivals: ["no-path-style"]),
  ]

  /// What the environment sets about the network, for verbs that have no options for it.
  static func network() throws -> NetworkOptions { try NetworkCommandOptions.fromEnvironment() }
}
