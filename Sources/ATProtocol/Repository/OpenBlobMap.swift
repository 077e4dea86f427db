internal import IPLD

/// What is known so far of a map that is open and may be a blob reference.
struct OpenBlobMap {
  /// The keys that blob references consist of.
  enum Key { case type, ref, cid, mimeType, size, other }

  /// The keys of blob references, and the type that they name.
  struct Vocabulary {
    let mimeType = ShortKey("mimeType")
    private let size = ShortKey("size")
    private let type = ShortKey("$type")
    private let ref = ShortKey("ref")
    private let cid = ShortKey("cid")
    private let blob = ShortKey("blob")

    /// Which key the text in `range` is.
    func key(_ record: Span<UInt8>, _ range: Range<Int>) -> Key {
      if type.matches(record, range) { return .type }
      if ref.matches(record, range) { return .ref }
      if cid.matches(record, range) { return .cid }
      if mimeType.matches(record, range) { return .mimeType }
      if size.matches(record, range) { return .size }
      return .other
    }

    /// Whether the text in `range` is the type of blob references.
    func isBlob(_ record: Span<UInt8>, _ range: Range<Int>) -> Bool { blob.matches(record, range) }
  }

  /// How many entries there are.
  var count = 0
  /// The key that came last.
  var key = Key.other
  /// Whether the type is that of blob references.
  var isTyped = false
  /// Where the link is, without the zero byte in front.
  var ref: Range<Int>?
  var cid: Range<Int>?
  var mimeType: Range<Int>?
  var size: Int?

  /// Keeps a text that belongs to the key that came last.
  mutating func note(text range: Range<Int>, in record: Span<UInt8>, _ vocabulary: Vocabulary) {
    switch key {
    case .type: isTyped = vocabulary.isBlob(record, range)
    case .cid: cid = range
    case .mimeType: mimeType = range
    case .ref, .size, .other: break
    }
  }

  /// Keeps a number that belongs to the key that came last.
  mutating func note(_ number: UInt64) {
    if key == .size { size = Int(exactly: number) }
  }

  /// Keeps a link that belongs to the key that came last.
  mutating func note(link range: Range<Int>) {
    if key == .ref { ref = range }
  }

  /// The blob reference that the map is; nil if it is not one.
  ///
  /// `malformed` is called with the reason if it is not what it should be.
  func reference(in record: Span<UInt8>, malformed: (String) -> Void = { _ in }) -> BlobRef? {
    if isTyped, let ref {
      do throws(CIDError) {
        let cid = try CID(record.extracting(ref))
        let mimeType = mimeType.map { String(decoding: record.array($0), as: UTF8.self) }
        Self.checkCodec(cid, malformed)
        return BlobRef(cid: cid, mimeType: mimeType, size: size, isLegacy: false)
      } catch {
        malformed("\(error)")
        return nil
      }
    }
    if count == 2, let text = cid, let mimeType {
      let mimeType = String(decoding: record.array(mimeType), as: UTF8.self)
      let text = String(decoding: record.array(text), as: UTF8.self)
      do throws(CIDError) {
        let cid = try CID(text)
        Self.checkCodec(cid, malformed)
        return BlobRef(cid: cid, mimeType: mimeType, size: nil, isLegacy: true)
      } catch {
        malformed("a blob reference of the old form without a valid CID: \(error)")
        return nil
      }
    }
    return nil
  }

  private static func checkCodec(_ cid: CID, _ malformed: (String) -> Void) {
    if cid.codec != .raw { malformed("a blob reference to \(cid), which is not the CID of a blob") }
  }
}
