extension Console {
  /// Prints rows of a name and a value, the values one below the other; rows without a value are
  /// left out.
  ///
  /// - Parameters:
  ///   - rows: the rows, in their order; one without a name goes on with the one before it.
  ///   - indent: how many blanks stand in front.
  ///   - width: how many columns the names take.
  package static func printRows(_ rows: [(String, String?)], indent: Int = 2, width: Int) {
    for case (let name, let value?) in rows {
      let blanks = String(repeating: " ", count: max(1, width - name.count))
      print("\(String(repeating: " ", count: indent))\(name)\(blanks)\(value)")
    }
  }
}
