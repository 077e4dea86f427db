/// The tables of a document while it is read, and the rules for adding to them.
struct TOMLTree {
  /// How a table came to be, which decides what may be added to it.
  enum Origin {
    /// By a header of a table below it: a header of its own may still come.
    case implied
    /// By a header.
    case header
    /// By a dotted key.
    case dotted
  }

  private enum Node {
    case value(TOMLValue)
    case table(Origin, entries: [(key: String, line: Int, node: Int)], places: [String: Int])
    /// Tables under `[[…]]`.
    case tables([Int])
  }

  private var nodes: [Node] = [.table(.header, entries: [], places: [:])]
  private var lines: [Int] = [1]

  /// The number of the table outside of all headers.
  static let root = 0

  /// The number of the table that a header `[…]` names.
  mutating func open(_ path: [String], line: Int) throws(TOMLError) -> Int {
    let parent = try descend(path.dropLast(), line: line)
    let key = path[path.count - 1]
    guard let child = child(key, of: parent) else {
      return add(.table(.header, entries: [], places: [:]), key, to: parent, line: line)
    }
    guard case .table(.implied, let entries, let places) = nodes[child] else {
      throw TOMLError(.duplicateTable(path.joined(separator: ".")), line: line)
    }
    nodes[child] = .table(.header, entries: entries, places: places)
    return child
  }

  /// The number of a new table that a header `[[…]]` begins.
  mutating func append(_ path: [String], line: Int) throws(TOMLError) -> Int {
    let parent = try descend(path.dropLast(), line: line)
    let key = path[path.count - 1]
    let list = child(key, of: parent) ?? add(.tables([]), key, to: parent, line: line)
    guard case .tables(var tables) = nodes[list] else {
      throw TOMLError(.duplicateTable(path.joined(separator: ".")), line: line)
    }
    let table = insert(.table(.header, entries: [], places: [:]), line: line)
    // Held in two places, each addition would copy all before it.
    nodes[list] = .tables([])
    tables.append(table)
    nodes[list] = .tables(tables)
    return table
  }

  /// A new table in braces, which nothing holds yet.
  mutating func begin(line: Int) -> Int {
    insert(.table(.header, entries: [], places: [:]), line: line)
  }

  /// Sets a value under a dotted key of a table.
  mutating func set(
    _ value: TOMLValue, at path: [String], in table: Int, line: Int
  ) throws(TOMLError) {
    var parent = table
    for key in path.dropLast() {
      guard let next = child(key, of: parent) else {
        parent = add(.table(.dotted, entries: [], places: [:]), key, to: parent, line: line)
        continue
      }
      guard case .table(let origin, let entries, let places) = nodes[next],
        origin == .implied || origin == .dotted
      else { throw TOMLError(.duplicateKey(path.joined(separator: ".")), line: line) }
      nodes[next] = .table(.dotted, entries: entries, places: places)
      parent = next
    }
    let key = path[path.count - 1]
    guard child(key, of: parent) == nil else {
      throw TOMLError(.duplicateKey(path.joined(separator: ".")), line: line)
    }
    _ = add(.value(value), key, to: parent, line: line)
  }

  /// The finished table; the parser has limited its depth.
  func table(_ number: Int) -> TOMLTable {
    guard case .table(_, let entries, _) = nodes[number] else { return TOMLTable([]) }
    return TOMLTable(
      entries.map { TOMLTable.Entry(key: $0.key, line: $0.line, value: value($0.node)) })
  }

  private func value(_ number: Int) -> TOMLValue {
    switch nodes[number] {
    case .value(let value): value
    case .table: TOMLValue(.table(table(number)), line: lines[number])
    case .tables(let tables):
      TOMLValue(
        .array(tables.map { TOMLValue(.table(table($0)), line: lines[$0]) }), line: lines[number])
    }
  }

  /// The table to which the last part of a header belongs.
  private mutating func descend(
    _ path: ArraySlice<String>, line: Int
  ) throws(TOMLError) -> Int {
    var place = Self.root
    for key in path {
      guard let next = child(key, of: place) else {
        place = add(.table(.implied, entries: [], places: [:]), key, to: place, line: line)
        continue
      }
      switch nodes[next] {
      case .table: place = next
      // The header continues in the table that came last.
      case .tables(let tables) where !tables.isEmpty: place = tables[tables.count - 1]
      default: throw TOMLError(.duplicateTable(key), line: line)
      }
    }
    return place
  }

  private func child(_ key: String, of table: Int) -> Int? {
    guard case .table(_, let entries, let places) = nodes[table] else { return nil }
    return places[key].map { entries[$0].node }
  }

  private mutating func add(_ node: Node, _ key: String, to table: Int, line: Int) -> Int {
    let number = insert(node, line: line)
    guard case .table(let origin, var entries, var places) = nodes[table] else { return number }
    // As above.
    nodes[table] = .tables([])
    places[key] = entries.count
    entries.append((key, line, number))
    nodes[table] = .table(origin, entries: entries, places: places)
    return number
  }

  private mutating func insert(_ node: Node, line: Int) -> Int {
    nodes.append(node)
    lines.append(line)
    return nodes.count - 1
  }
}
