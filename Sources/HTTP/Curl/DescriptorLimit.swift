internal import LibC

/// How many descriptors the process may have open.
enum DescriptorLimit {
  /// How many are wanted: more than any number of transfers needs.
  private static let wanted: rlim_t = 8192
  /// How many are left for what is not a transfer: archives, libraries, the system's own.
  private static let others = 64
  /// How many a transfer takes at most: its socket, the pair by which its name is looked up, a file
  /// for what is not kept in memory.
  private static let perTransfer = 4
  /// How many transfers are enough.
  private static let maximumTransfers = 1024

  /// Raises the limit as far as the system lets it, and returns how many transfers may run at a
  /// time.
  ///
  /// The runtime ends a process that cannot open one more; so transfers have to stay below.
  static func raise() -> Int {
    var limit = rlimit()
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let resource = RLIMIT_NOFILE
    #endif
    guard unsafe getrlimit(resource, &limit) == 0 else { return maximumTransfers }
    limit.rlim_cur = min(limit.rlim_max, max(limit.rlim_cur, wanted))
    _ = unsafe setrlimit(resource, &limit)
    // It may not have been allowed.
    _ = unsafe getrlimit(resource, &limit)
    let open = Int(clamping: limit.rlim_cur)
    return min(maximumTransfers, max(1, (open - others) / perTransfer))
  }
}
