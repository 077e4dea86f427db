internal import HTTP

/// Where the objects of a bucket are requested.
struct Endpoint: Sendable {
  /// The scheme and the host, and the port if it is not the scheme's.
  let origin: String
  /// The host as requests name it.
  let host: String
  /// What comes before the key in a path, escaped, without a slash at its end.
  let prefix: String

  /// The place of a bucket.
  ///
  /// - Throws: ``StoreError`` if the endpoint's URL cannot be used.
  init(of bucket: String, region: String, _ options: StoreOptions, endpoint: String?)
    throws(StoreError)
  {
    let isHostName = Self.canBeHostName(bucket)
    let inPath = options.namesBucketInPath ?? (endpoint != nil || !isHostName)
    guard inPath || isHostName else {
      throw StoreError(
        .refused, "the bucket \(bucket) cannot be part of a host's name: use --path-style")
    }
    let amazon = "https://s3.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")"
    let endpoint = endpoint ?? amazon
    let url: HTTPURL
    do throws(TransportError) {
      url = try HTTPURL(endpoint)
    } catch {
      throw StoreError(
        .refused, "the store's URL cannot be used, \"\(endpoint)\": \(error.what)")
    }
    let path = url.path.hasSuffix("/") ? String(url.path.dropLast()) : url.path
    let scheme = url.isSecure ? "https://" : "http://"
    let named = String(url.origin.dropFirst(scheme.count))
    host = inPath ? named : "\(bucket).\(named)"
    origin = scheme + host
    prefix = path + (inPath ? "/\(bucket)" : "")
  }

  /// The path of a key, escaped as it is signed and sent.
  func path(of key: String) -> String {
    "\(prefix)/\(HTTPURL.escaped(key, isPath: true))"
  }

  /// Whether a certificate for all names below a host fits a bucket's.
  private static func canBeHostName(_ bucket: String) -> Bool {
    3...63 ~= bucket.count && !bucket.hasPrefix("-") && !bucket.hasSuffix("-")
      && bucket.utf8.allSatisfy {
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 || UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0
          || $0 == UInt8(ascii: "-")
      }
  }
}
