internal import ATProtocol
internal import Archive
internal import IPLD

/// The order of the snapshots.
///
/// Those that footers lead to have one: that of the chain of manifests, and where this is broken
/// that of the footers. Any other stands after the manifest that its own names, and before those
/// that name it. Where that leaves a choice, it stands after the snapshots of its account whose
/// revisions are not newer, but never behind the newest that is committed unless its chain goes on
/// from that. Where in the file a manifest lies means nothing: a repair may have written it again.
extension SnapshotHistory {
  /// Where a snapshot belongs among those that are in order already: after how many of these, no
  /// further than that many, and after which of the others in the same place.
  private struct Slot {
    var place = 0
    var limit: Int
    var revision = ""
    var depth = 0
  }

  /// Puts snapshots among those that are listed, and numbers all of them.
  ///
  /// - Parameter found: Snapshots that no footer leads to.
  package mutating func place(_ found: [Entry]) {
    if !found.isEmpty {
      let head = entries.last(where: \.isCommitted)?.cid
      merge(found)
      noteContinuation(of: head)
      entries = Self.inOrder(entries) { $0.isCommitted || $0.continuesChain }
    }
    for index in entries.indices { entries[index].number = index + 1 }
    let last = entries.lastIndex { $0.isVouched && $0.isCommitted } ?? -1
    for index in entries.indices {
      entries[index].mayBeNewest =
        entries[index].isCommitted && (entries[index].isVouched || index > last)
    }
  }

  /// Some snapshots in their order: those that may not be the last stand directly before the last
  /// that may.
  package static func inOrder<Element>(
    _ snapshots: [Element], mayBeLast: (Element) -> Bool
  ) -> [Element] {
    guard let head = snapshots.lastIndex(where: mayBeLast) else { return snapshots }
    return snapshots[..<head] + snapshots[(head + 1)...] + [snapshots[head]]
  }

  /// Notes which snapshots go on from the newest that is committed.
  private mutating func noteContinuation(of head: CID?) {
    guard let head else { return }
    var next: Set<CID> = [head]
    for index in entries.indices where !entries[index].isCommitted {
      entries[index].continuesChain = entries[index].previous.map(next.contains) ?? false
      if entries[index].continuesChain { next.insert(entries[index].cid) }
    }
  }

  private mutating func merge(_ found: [Entry]) {
    let places = Dictionary(
      entries.enumerated().map { ($1.cid, $0) }, uniquingKeysWith: { first, _ in first })
    let numbers = Dictionary(
      found.enumerated().map { ($1.cid, $0) }, uniquingKeysWith: { first, _ in first })
    var slots = found.map { _ in Slot(limit: entries.count) }
    for (place, entry) in entries.enumerated() {
      guard let number = entry.previous.flatMap({ numbers[$0] }) else { continue }
      slots[number].limit = min(slots[number].limit, place)
    }
    let order = Self.byChain(found, numbers)
    for number in order.reversed() {
      guard let before = found[number].previous.flatMap({ numbers[$0] }) else { continue }
      slots[before].limit = min(slots[before].limit, slots[number].limit)
    }
    let revisions = Dictionary(grouping: entries.indices) { entries[$0].did }
      .mapValues { newest(upTo: $0) }
    let all = newest(upTo: Array(entries.indices))
    for number in order {
      let entry = found[number]
      var slot = slots[number]
      slot.revision = entry.rev?.text ?? ""
      let known = revisions[entry.did] ?? all
      let newer = known.partitioningIndex { $0.revision > slot.revision }
      slot.place = newer > 0 ? known[newer - 1].place + 1 : 0
      if let place = entry.previous.flatMap({ places[$0] }) {
        slot.place = max(slot.place, place + 1)
      }
      if let before = entry.previous.flatMap({ numbers[$0] }) {
        slot.place = max(slot.place, slots[before].place)
        slot.revision = max(slot.revision, slots[before].revision)
        slot.depth = slots[before].depth + 1
      }
      slot.place = min(slot.place, slot.limit)
      slots[number] = slot
    }
    let sorted = found.indices.sorted {
      let (left, right) = (slots[$0], slots[$1])
      return (left.place, left.revision, left.depth, $0)
        < (right.place, right.revision, right.depth, $1)
    }
    var rest = sorted[...]
    var merged: [Entry] = []
    merged.reserveCapacity(entries.count + found.count)
    for place in 0...entries.count {
      while let number = rest.first, slots[number].place == place {
        merged.append(found[number])
        rest.removeFirst()
      }
      if place < entries.count { merged.append(entries[place]) }
    }
    entries = merged
  }

  /// The numbers of snapshots, each after the one that its manifest names.
  private static func byChain(_ found: [Entry], _ numbers: [CID: Int]) -> [Int] {
    var order: [Int] = []
    var isTaken = found.map { _ in false }
    for number in found.indices where !isTaken[number] {
      var chain: [Int] = []
      var next: Int? = number
      while let link = next, !isTaken[link] {
        isTaken[link] = true
        chain.append(link)
        next = found[link].previous.flatMap { numbers[$0] }
      }
      order += chain.reversed()
    }
    return order
  }

  /// By revisions, ascending, the last of these places that has one up to it.
  private func newest(upTo places: [Int]) -> [(revision: String, place: Int)] {
    var found: [(revision: String, place: Int)] = []
    for (revision, place) in places.map({ (entries[$0].rev?.text ?? "", $0) }).sorted(by: <) {
      found.append((revision, max(found.last?.place ?? 0, place)))
    }
    return found
  }
}
