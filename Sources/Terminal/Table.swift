/// Rows of text in columns that are as wide as their content.
package enum Table {
  /// The side to which a column is aligned.
  package enum Side {
    case left, right
  }

  /// Prints the titles and the rows; columns are two blanks apart, and no line ends in one.
  ///
  /// - Parameters:
  ///   - columns: the title of each column, and its alignment.
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
  ///   - side: the alignment of the text.
  ///   - width: the least number of characters.
  package func padded(_ side: Table.Side = .left, to width: Int) -> String {
    let blanks = String(repeating: " ", count: max(0, width - count))
    return side == .left ? self + blanks : blanks + self
  }
}

extension Console {
  /// Prints names and values, one pair below the other, indented; names without a value are
  /// left out.
  ///
  /// - Parameters:
  ///   - rows: the names and their values.
  ///   - indent: how many blanks are in front.
  ///   - width: the column of the values, counted from the beginning of the names.
  package static func print(
    _ rows: [(name: String, value: String?)], indent: Int = 2, width: Int
  ) {
    let blanks = "".padded(to: indent)
    for case (let name, let value?) in rows {
      print("\(blanks)\(name.padded(to: width - 1)) \(value)")
    }
  }
}
