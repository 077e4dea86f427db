/// Rows of text in columns that are as wide as they have to be.
package struct Table {
  /// On which side a column is even.
  package enum Side {
    case left, right
  }

  private let sides: [Side]
  private var rows: [[String]]

  /// A table with these columns.
  package init(_ columns: [(title: String, side: Side)]) {
    sides = columns.map(\.side)
    rows = [columns.map(\.title)]
  }

  /// Adds a row, one text for each column.
  package mutating func add(_ cells: [String]) { rows.append(cells) }

  /// The lines, the titles first; columns are two blanks apart, and no line ends in one.
  package var lines: [String] {
    var widths = [Int](repeating: 0, count: sides.count)
    for row in rows {
      for (column, cell) in row.enumerated() { widths[column] = max(widths[column], cell.count) }
    }
    return rows.map { row in
      let cells = row.enumerated().map { column, cell in
        let blanks = String(repeating: " ", count: widths[column] - cell.count)
        return sides[column] == .left ? cell + blanks : blanks + cell
      }
      let line = cells.joined(separator: "  ")
      return String(
        line[..<(line.lastIndex { $0 != " " }.map(line.index(after:)) ?? line.startIndex)])
    }
  }
}
