internal import IPLD

extension BlobLedger {
  /// Entries of the ledger in little memory: some seventy bytes each.
  ///
  /// An account may lack a million blobs; what is said of them repeats itself.
  public struct MissingList: Sendable, RandomAccessCollection, Equatable, ExpressibleByArrayLiteral
  {
    /// What is known of a blob; texts by their numbers.
    private struct Facts {
      var size: Int
      var status: Int32
      var reason: UInt32
      var firstTried: UInt32
      var lastTried: UInt32
      var accepted: UInt32
      var isReferenced: Bool
    }

    /// The blobs.
    package private(set) var cids: CIDList = []
    private var facts: [Facts] = []
    private var texts = Numbered<String>()
    private var acceptances = Numbered<Acceptance>()

    private static let absent = Int.min

    /// A list of these.
    package init(_ entries: some Sequence<Missing> = EmptyCollection()) {
      for entry in entries { append(entry) }
    }

    /// A list of these.
    public init(arrayLiteral elements: Missing...) { self.init(elements) }

    /// The place of the first.
    public var startIndex: Int { 0 }
    /// The place behind the last.
    public var endIndex: Int { facts.count }

    /// The entry in a place.
    public subscript(place: Int) -> Missing {
      let facts = facts[place]
      var entry = Missing(
        cid: cids[place], reason: Reason(rawValue: texts[facts.reason] ?? ""),
        size: facts.size == Self.absent ? nil : facts.size)
      entry.status = facts.status == .min ? nil : Int(facts.status)
      entry.firstTried = texts[facts.firstTried]
      entry.lastTried = texts[facts.lastTried]
      entry.accepted = acceptances[facts.accepted]
      entry.isReferenced = facts.isReferenced
      return entry
    }

    /// Adds an entry at the end.
    package mutating func append(_ entry: Missing) {
      cids.append(entry.cid)
      facts.append(
        Facts(
          size: entry.size ?? Self.absent,
          // No status has more than three digits.
          status: entry.status.map { Int32(clamping: $0) } ?? .min,
          reason: texts.number(of: entry.reason.rawValue),
          firstTried: texts.number(of: entry.firstTried),
          lastTried: texts.number(of: entry.lastTried),
          accepted: acceptances.number(of: entry.accepted), isReferenced: entry.isReferenced))
    }

    /// How many no record refers to.
    var unreferencedCount: Int { facts.count { !$0.isReferenced } }

    /// Whether it says what another says, but for when blobs were last asked for.
    func saysNothingNew(after earlier: MissingList) -> Bool {
      count == earlier.count
        && indices.allSatisfy { place in
          var entry = self[place]
          let other = earlier[place]
          entry.lastTried = other.lastTried
          return entry == other
        }
    }

    /// Whether both say the same.
    public static func == (left: MissingList, right: MissingList) -> Bool {
      left.elementsEqual(right)
    }
  }
}

/// Values that repeat themselves, by numbers; 0 stands for none.
private struct Numbered<Value: Hashable & Sendable>: Sendable {
  private var values: [Value] = []
  private var numbers: [Value: UInt32] = [:]

  subscript(number: UInt32) -> Value? { number == 0 ? nil : values[Int(number) - 1] }

  mutating func number(of value: Value?) -> UInt32 {
    guard let value else { return 0 }
    if let number = numbers[value] { return number }
    values.append(value)
    numbers[value] = UInt32(values.count)
    return UInt32(values.count)
  }
}
