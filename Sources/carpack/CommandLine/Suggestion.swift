/// A word that the user may have meant by one that does not exist.
enum Suggestion {
  /// The words that are nearest to a mistyped one: at most a third of its letters differ.
  static func words(like typed: String, among words: [String]) -> [String] {
    let typed = Array(typed.lowercased().unicodeScalars.prefix(32))
    let limit = max(1, (typed.count + 1) / 3)
    let near = words.compactMap { word -> (String, Int)? in
      let distance = distance(typed, Array(word.unicodeScalars))
      return distance <= limit ? (word, distance) : nil
    }
    let least = near.map(\.1).min()
    return near.filter { $0.1 == least }.map(\.0)
  }

  /// How many letters have to be inserted, left out, replaced or exchanged with the next one.
  private static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for row in left.indices {
      var current = [row + 1]
      for column in right.indices {
        let replaced = last[column] + (left[row] == right[column] ? 0 : 1)
        var least = min(replaced, last[column + 1] + 1, current[column] + 1)
        if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
          least = min(least, beforeLast[column - 1] + 1)
        }
        current.append(least)
      }
      (beforeLast, last) = (last, current)
    }
    return last[right.count]
  }
}
