/// Rows of text in columns that are as wide as they have to be.
package enum Table {
  /// On which side a column is even.
  package enum Side {
    case left, right
  }

  /// Prints the titles and the rows; columns are two blanks apart, and no line ends in one.
  ///
  /// - Parameters:
  ///   - columns: what stands at the top of each, and on which side it is even.
  ///   - rows: one text for each column.
  package static func print(_ columns: [(title: String, side: Side)], _ rows: [[String]]) {
    let rows = [columns.map(\.title)] + rows
    let widths = columns.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    for row in rows {
      let cells = columns.indices.map { row[$0].padded(columns[$0].side, to: widths[$0]) }
      let line = cells.joined(separator: "  ")
      Console.print(String(line.reversed().drop { $0 == " " }.reversed()))
    }
  }
}

extension String {
  /// The text with blanks, up to a width.
  ///
  /// - Parameters:
  ///   - side: where the text stands.
  ///   - width: how many characters there are then, unless there are more.
  package func padded(_ side: Table.Side = .left, to width: Int) -> String {
    let blanks = String(repeating: " ", count: max(0, width - count))
    return side == .left ? self + blanks : blanks + self
  }
}

extension Console {
  /// Prints names and what is said of each, one below the other, indented; one of which nothing is
  /// said is left out.
  ///
  /// - Parameters:
  ///   - rows: the names, and what is said of them.
  ///   - indent: how many blanks stand in front.
  ///   - width: how far the values stand after the beginning of the names.
  package static func print(
    _ rows: [(name: String, value: String?)], indent: Int = 2, width: Int
  ) {
    let blanks = "".padded(to: indent)
    for case (let name, let value?) in rows {
      print("\(blanks)\(name.padded(to: width - 1)) \(value)")
    }
  }
}
