internal import ATProtocol
internal import IPLD
internal import Snapshots
internal import XRPC

/// The records of a repository, naming another account in the place of their own.
///
/// Records that refer to others of the same account name it by its DID, and these by their CIDs. So
/// they are rewritten, each after the ones that it refers to.
struct RewrittenRecords {
  private let repository: LaidOutRepository
  private let old: String
  private let new: String
  /// What was rewritten so far: the new CIDs, by paths.
  private var known: [String: CID] = [:]
  /// How many records were rewritten.
  private(set) var count = 0

  /// The records of a repository, going from one account to another.
  init(in repository: LaidOutRepository, from old: DID, to new: DID) {
    (self.repository, self.old, self.new) = (repository, old.text, new.text)
  }

  /// A record's value; nil for one that cannot be read, which stays as it is.
  private static func value(of block: Block) -> IPLDValue? {
    do throws(DAGCBORError) { return try DAGCBORDecoder.decode(block.bytes.span) } catch {
      return nil
    }
  }

  /// A rewritten record.
  ///
  /// A record that refers to others knows their CIDs, so that references never lead round. They may
  /// be long, as threads are, so that no call is made inside another.
  mutating func record(_ path: String, _ block: Block) throws -> Block {
    var open = [(path, block)]
    while let (path, block) = open.last {
      let value = Self.value(of: block)
      let parts = value.map(Self.parts) ?? []
      guard let value, parts.contains(where: { $0.string.map(names) ?? false }) else {
        known[path] = block.cid
        open.removeLast()
        continue
      }
      // The first of the own records that it refers to with their CIDs and that is not known yet.
      var first: (String, Block)?
      for target in parts.compactMap({ $0.map.flatMap(target) })
      where known[target.path] == nil && !open.contains(where: { $0.0 == target.path }) {
        guard let block = try repository.record(target.path), block.cid == target.cid else {
          continue
        }
        first = (target.path, block)
        break
      }
      if let first {
        open.append(first)
        continue
      }
      let bytes = try DAGCBOREncoder.encode(rewritten(value))
      let cid = CID(codec: .dagCBOR, hashing: bytes.span)
      known[path] = cid
      open.removeLast()
      if open.isEmpty {
        count += 1
        return Block(cid: cid, bytes: bytes)
      }
    }
    return block
  }

  /// A value and all that is in it, without a call inside another.
  private static func parts(of value: IPLDValue) -> [IPLDValue] {
    var parts = [value]
    var next = 0
    while next < parts.count {
      switch parts[next] {
      case .array(let items): parts += items
      case .map(let map): parts += map.entries.map(\.value)
      default: break
      }
      next += 1
    }
    return parts
  }

  /// The value with the other account's DID in the place of this one's, and the CIDs of records
  /// that were rewritten.
  ///
  /// The depth of a record is limited by what decodes it.
  private func rewritten(_ value: IPLDValue) -> IPLDValue {
    switch value {
    case .string(let text):
      if text == old { return .string(new) }
      return names(text)
        ? .string("at://" + new + text.dropFirst("at://".count + old.count)) : value
    case .array(let items): return .array(items.map(rewritten))
    case .map(let map):
      var result = map
      for entry in map.entries { result[entry.key] = rewritten(entry.value) }
      if let target = target(map), let cid = known[target.path] {
        result["cid"] = .string("\(cid)")
      }
      return .map(result)
    default: return value
    }
  }

  private func names(_ text: String) -> Bool { text == old || text.hasPrefix("at://\(old)/") }

  private func target(_ map: IPLDMap) -> (path: String, cid: CID)? {
    guard let uri = map["uri"]?.string, uri.hasPrefix("at://\(old)/"),
      let cid = Answer(.map(map)).optionalCID("cid")
    else { return nil }
    return (String(uri.dropFirst("at://\(old)/".utf8.count)), cid)
  }
}
