internal import Files
package import IPLD

/// An earlier snapshot of the account, to whose order that of a later one may be relative.
package struct OrderBasis {
  /// Its manifest.
  let manifest: CID
  /// How many orders its own is relative to, one upon the other.
  let depth: Int
  /// Its order, asked for only if it is of use; nil if it is damaged.
  let order: () throws -> BlockOrder?
}

extension OrderBasis {
  /// A snapshot that lies in the archive; nil if it has no manifest, or its order is damaged.
  package init?(_ archived: ArchivedSnapshot) throws {
    guard let cid = archived.cid else { return nil }
    guard let depth = try unlessDamaged(archived.orderDepth) else { return nil }
    self.init(manifest: cid, depth: depth) { try unlessDamaged(archived.order) }
  }
}

/// An order as a manifest has it.
package struct WrittenOrder {
  /// The runs, or where they lie.
  package let order: Snapshot.Order
  /// What they are relative to; nil if their positions are ordinals.
  package let base: Snapshot.OrderBase?
  /// The blocks that hold them, if they are too long for a manifest.
  package let pages: [Block]
  /// How many orders this one is relative to.
  let depth: Int
}

extension BlockOrder {
  /// The order relative to that of `basis`, or as it is if that is shorter or many are relative
  /// already.
  ///
  /// - Throws: ``BackupError`` for an order that takes more than a reader reads; what asking for
  ///   the basis throws.
  package func written(after basis: OrderBasis?) throws -> WrittenOrder {
    let maximumRuns = Self.maximumRuns(ofSections: runs.reduce(0) { max($0, $1.upperBound) })
    let (shortest, base) = try shortest(after: basis)
    let encoded = shortest.encoded
    guard runs.count <= maximumRuns, encoded.count <= Self.maximumLength(ofRuns: maximumRuns)
    else {
      throw BackupError.malformedRepository(
        "the CAR repeats its blocks too often, in too many orders")
    }
    let depth = base == nil ? 0 : (basis?.depth ?? 0) + 1
    guard encoded.count > Self.maximumInline else {
      return WrittenOrder(order: .inline(encoded), base: base, pages: [], depth: depth)
    }
    let pages = Self.pages(encoded)
    return WrittenOrder(order: .pages(pages.map(\.cid)), base: base, pages: pages, depth: depth)
  }

  private func shortest(after basis: OrderBasis?) throws -> (BlockOrder, Snapshot.OrderBase?) {
    guard let basis, runs.count > 1 || basis.depth > 0, basis.depth < Self.maximumDepth,
      let base = try basis.order()
    else { return (self, nil) }
    let (relative, first) = relative(to: base)
    let overhead = basis.manifest.bytes.count + 16
    guard relative.encoded.count + overhead < encoded.count else { return (self, nil) }
    return (relative, Snapshot.OrderBase(manifest: basis.manifest, first: first))
  }
}
