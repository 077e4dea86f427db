/// What a user sets about a store, from options, environment variables and Amazon's files.
package struct StoreOptions: Sendable {
  /// The URL of the store; nil for Amazon's.
  package var endpoint: String?
  /// The region; nil for the one of the profile, or else `us-east-1`.
  package var region: String?
  /// The profile in Amazon's files; nil for `default`.
  package var profile: String?
  /// Whether requests go without a signature, as buckets that everyone may read let them.
  package var isUnsigned = false
  /// Whether the bucket is named in the path, and not in the host; nil for what fits the store.
  package var namesBucketInPath: Bool?

  /// The environment's variables by their names; those without text count as none.
  package var environment: @Sendable (String) -> String?

  /// The defaults.
  package init(environment: @escaping @Sendable (String) -> String?) {
    self.environment = environment
  }
}
