package import IPLD

/// Blocks that are new, laid over those that were there before: of a block that both have, the new
/// one counts.
package struct Overlay<New: BlockSource, Old: BlockSource>: BlockSource {
  package let new: New
  package let old: Old

  package init(_ new: New, over old: Old) { (self.new, self.old) = (new, old) }

  package var numberLimit: Int { new.numberLimit + old.numberLimit }

  package func number(of cid: CID) -> Int? {
    new.number(of: cid) ?? old.number(of: cid).map { new.numberLimit + $0 }
  }

  package func appendNumbers(of cids: [CommonCID], to numbers: inout [Int?]) {
    let first = numbers.count
    new.appendNumbers(of: cids, to: &numbers)
    for (index, cid) in cids.enumerated() where numbers[first + index] == nil {
      numbers[first + index] = old.number(of: cid.cid).map { new.numberLimit + $0 }
    }
  }

  package func kind(_ number: Int) -> BlockKind {
    number < new.numberLimit ? new.kind(number) : old.kind(number - new.numberLimit)
  }

  package func bodyLength(_ number: Int) -> UInt64 {
    number < new.numberLimit
      ? new.bodyLength(number) : old.bodyLength(number - new.numberLimit)
  }

  package func withBody<Value, Failure: Error>(
    _ number: Int, _ use: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    number < new.numberLimit
      ? try new.withBody(number, use) : try old.withBody(number - new.numberLimit, use)
  }
}
