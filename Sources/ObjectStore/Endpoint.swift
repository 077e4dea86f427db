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

  private init(origin: String, host: String, prefix: String) {
    (self.origin, self.host, self.prefix) = (origin, host, prefix)
  }

  /// The place to which this one points for a bucket that is so new that its name still leads here.
  ///
  /// It has to be the same store in another region: the same scheme, port and host but for the
  /// region in it, the same key. Anything else would be sent what is this store's alone.
  ///
  /// - Parameters:
  ///   - location: the field `Location`.
  ///   - key: the key that was asked for.
  ///   - bucket: the bucket.
  /// - Returns: the place and its region; nil if it is not followed.
  func regional(_ location: String, asked key: String, bucket: String)
    -> (endpoint: Endpoint, region: String)?
  {
    guard let here = try? HTTPURL(origin), let there = try? HTTPURL(location, relativeTo: here),
      here.isSecure == there.isSecure, here.authority.port == there.authority.port,
      here.authority.address == nil, there.authority.address == nil
    else { return nil }
    let (old, new) = (
      RegionalHost(here.authority.host, of: bucket), RegionalHost(there.authority.host, of: bucket)
    )
    guard let region = new.region, region != old.region, new.store == old.store else { return nil }
    let host = String(there.origin.trimmingPrefix(here.isSecure ? "https://" : "http://"))
    let place = Endpoint(
      origin: there.origin, host: host, prefix: new.namesBucket ? "" : "/\(bucket)")
    return there.path == place.path(of: key) ? (place, region) : nil
  }

  /// A store's host, taken apart: `BUCKET.s3.REGION.example.com`.
  private struct RegionalHost {
    let namesBucket: Bool
    /// Nil where it names none.
    var region: String?
    /// What is left without the bucket and the region.
    var store: [Substring] = []

    init(_ host: String, of bucket: String) {
      namesBucket = host.hasPrefix("\(bucket).")
      let labels = host.dropFirst(namesBucket ? bucket.count + 1 : 0).split(separator: ".")
      for (place, label) in labels.enumerated() {
        // Amazon's older form: s3-REGION.
        let isOlder = label.hasPrefix("s3-")
        let name = isOlder ? label.dropFirst("s3-".count) : label
        // The last two labels are the store's own domain, whatever they look like.
        guard place + 2 < labels.count, region == nil, Self.isRegion(name) else {
          store.append(label)
          continue
        }
        region = String(name)
        if isOlder { store.append("s3") }
      }
    }

    /// Whether a label has the form of a region's name, such as `eu-central-1`.
    private static func isRegion(_ label: Substring) -> Bool {
      let parts = label.split(separator: "-", omittingEmptySubsequences: false)
      return 3...4 ~= parts.count && parts[0].count == 2
        && parts.dropLast().allSatisfy { part in
          part.utf8.allSatisfy { UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 } && !part.isEmpty
        } && parts.last.map { UInt8($0) != nil } == true
    }
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
