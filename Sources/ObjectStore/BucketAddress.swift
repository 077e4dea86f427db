/// A place in an object store: `s3://bucket/key`.
package struct BucketAddress: Hashable, Sendable, CustomStringConvertible {
  /// The bucket.
  package let bucket: String
  /// The key of an object, or the beginning of some objects' keys; it may be empty.
  package let key: String

  /// The scheme such addresses begin with.
  package static let scheme = "s3://"
  /// How many bytes a key may have.
  private static let longestKey = 1024

  /// A bucket and a key in it.
  package init(bucket: String, key: String) { (self.bucket, self.key) = (bucket, key) }

  /// Reads an address.
  ///
  /// A key is taken as it stands, with no escapes. One with a segment `.` or `..` is refused: not
  /// every program on the way leaves it alone.
  ///
  /// - Throws: ``StoreError`` if it is not one, with the reason.
  package init(_ text: String) throws(StoreError) {
    guard text.hasPrefix(Self.scheme) else {
      throw StoreError(.noAddress, "\"\(text)\" is not an address in a store")
    }
    let parts = text.dropFirst(Self.scheme.count).split(
      separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    bucket = String(parts[0])
    key = parts.count > 1 ? String(parts[1]) : ""
    // Amazon made longer ones, and ones with underscores, until 2018.
    guard 3...255 ~= bucket.utf8.count, bucket.utf8.allSatisfy(Self.isOfBucket),
      !bucket.hasPrefix("."), !bucket.contains("..")
    else {
      throw StoreError(
        .noAddress,
        "\"\(bucket)\" cannot be a bucket's name: 3 to 63 letters, digits, dots and hyphens")
    }
    let segments = key.split(separator: "/", omittingEmptySubsequences: false)
    guard key.utf8.count <= Self.longestKey, !segments.contains("."), !segments.contains(".."),
      !key.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f })
    else { throw StoreError(.refused, "\"\(text)\" has a key that cannot be used") }
  }

  /// Whether it is a prefix, not the address of an object.
  package var isFolder: Bool { key.isEmpty || key.hasSuffix("/") }

  /// The address of an object: this one, or in a folder the object of that name.
  package func naming(_ name: String) -> BucketAddress {
    isFolder ? BucketAddress(bucket: bucket, key: key + name) : self
  }

  private static func isOfBucket(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// `s3://bucket/key`.
  package var description: String { "\(Self.scheme)\(bucket)/\(key)" }
}
