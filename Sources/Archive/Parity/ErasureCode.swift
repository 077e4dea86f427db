/// A Reed–Solomon code over rows of equal length: data rows, and parity rows from which as many
/// lost rows are rebuilt (FORMAT 4.5).
///
/// It works in the field of 256 numbers with the polynomial x⁸ + x⁴ + x³ + x² + 1. Byte *i* of
/// parity row *p* is the sum, over all data rows *d*, of byte *i* of that row times
/// 1 / ((255 − p) xor d). This is a Cauchy matrix, of which every square part has an inverse, so
/// any lost rows can be rebuilt that are no more than the parity rows left.
struct ErasureCode {
  /// The most rows of both kinds.
  static let maximumRows = 255

  let dataRows: Int
  let parityRows: Int
  private let library: ErasureLibrary
  private var tables: [UInt8]

  /// A code.
  ///
  /// - Precondition: There are no more than ``maximumRows``, and one of each kind at least.
  /// - Throws: ``ArchiveError`` if the library for it is not installed.
  init(dataRows: Int, parityRows: Int) throws(ArchiveError) {
    library = try ErasureLibrary.opened()
    (self.dataRows, self.parityRows) = (dataRows, parityRows)
    var matrix: [UInt8] = []
    for parity in 0..<parityRows {
      for data in 0..<dataRows {
        matrix.append(Self.coefficient(parity: parity, data: data, library))
      }
    }
    tables = library.tables(matrix, columns: dataRows, rows: parityRows)
  }

  private static func coefficient(parity: Int, data: Int, _ library: ErasureLibrary) -> UInt8 {
    library.inverse(UInt8(255 - parity) ^ UInt8(data))
  }

  /// Makes the parity rows of data rows.
  ///
  /// - Parameters:
  ///   - data: Where each data row begins.
  ///   - parity: Where each parity row begins.
  ///   - length: How many bytes a row has.
  mutating func encode(
    _ data: inout [UnsafeMutablePointer<UInt8>?], into parity: inout [UnsafeMutablePointer<UInt8>?],
    length: Int
  ) {
    unsafe library.multiply(&tables, by: &data, into: &parity, length: length)
  }

  /// Makes the parity rows of data rows that lie one after the other, followed by room for these.
  mutating func encode(_ rows: inout [UInt8], length: Int) {
    unsafe rows.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return }
      var data = unsafe (0..<dataRows).map { unsafe Optional(base + $0 * length) }
      var parity = unsafe (dataRows..<dataRows + parityRows).map {
        unsafe Optional(base + $0 * length)
      }
      unsafe encode(&data, into: &parity, length: length)
    }
  }

  /// Rebuilds lost rows.
  ///
  /// - Parameters:
  ///   - rows: The data rows and the parity rows, one after the other; what stands in the place of
  ///     lost ones does not matter.
  ///   - lost: The numbers of the lost rows, ascending.
  ///   - length: How many bytes a row has.
  /// - Returns: Whether there were enough rows left.
  mutating func rebuild(_ rows: inout [UInt8], lost: [Int], length: Int) -> Bool {
    guard !lost.isEmpty else { return true }
    let data = lost.filter { $0 < dataRows }
    let known = (dataRows..<dataRows + parityRows).filter { !lost.contains($0) }.prefix(data.count)
    guard known.count == data.count else { return false }
    for row in data {
      for place in row * length..<(row + 1) * length { rows[place] = 0 }
    }
    if !data.isEmpty {
      // What the lost rows add to the existing parity.
      var made = rows
      encode(&made, length: length)
      var sums: [UInt8] = []
      for row in known {
        for place in row * length..<(row + 1) * length { sums.append(rows[place] ^ made[place]) }
      }
      guard let solved = solve(sums, lost: data, known: Array(known), length: length) else {
        return false
      }
      for (number, row) in data.enumerated() {
        rows.replaceSubrange(
          row * length..<(row + 1) * length, with: solved[number * length..<(number + 1) * length])
      }
    }
    var made = rows
    encode(&made, length: length)
    for row in lost where row >= dataRows {
      let range = row * length..<(row + 1) * length
      rows.replaceSubrange(range, with: made[range])
    }
    return true
  }

  /// The lost data rows, one after the other, by what they add to some parity rows.
  private func solve(_ sums: [UInt8], lost: [Int], known: [Int], length: Int) -> [UInt8]? {
    let matrix = known.flatMap { row in
      lost.map { Self.coefficient(parity: row - dataRows, data: $0, library) }
    }
    guard let inverse = library.inverse(matrix, size: lost.count) else { return nil }
    var tables = library.tables(inverse, columns: lost.count, rows: lost.count)
    var (sums, solved) = (sums, [UInt8](repeating: 0, count: sums.count))
    unsafe sums.withUnsafeMutableBufferPointer { input in
      unsafe solved.withUnsafeMutableBufferPointer { output in
        guard let from = input.baseAddress, let to = output.baseAddress else {
          return
        }
        var data = unsafe lost.indices.map { unsafe Optional(from + $0 * length) }
        var made = unsafe lost.indices.map { unsafe Optional(to + $0 * length) }
        unsafe library.multiply(&tables, by: &data, into: &made, length: length)
      }
    }
    return solved
  }
}
