/// Results of concurrent work, in the order of their arrival.
actor Collected<Item: Sendable> {
  /// What has arrived so far.
  private(set) var items: [Item] = []
  /// Adds one.
  func add(_ item: Item) { items.append(item) }
}
