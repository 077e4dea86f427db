internal import CISAL
internal import LibC

/// ISA-L, opened when parity is first made or used (`dlopen`), and the functions of it that are
/// used.
///
/// This file and the shim are all that know how it is called.
@safe
struct ErasureLibrary: @unchecked Sendable {
  private let functions: carpack_isal

  private static let shared = Result { () throws(ArchiveError) in try open() }

  #if canImport(Darwin)
    private static let names = [
      "libisal.2.dylib", "/opt/homebrew/lib/libisal.2.dylib", "/usr/local/lib/libisal.2.dylib",
    ]
  #else
    private static let names = ["libisal.so.2"]
  #endif

  /// The library.
  ///
  /// - Throws: ``ArchiveError`` with the reason `noErasureLibrary` if it cannot be used.
  static func opened() throws(ArchiveError) -> ErasureLibrary { try shared.get() }

  private static func open() throws(ArchiveError) -> ErasureLibrary {
    var opened: UnsafeMutableRawPointer?
    for name in names where unsafe opened == nil {
      unsafe opened = dlopen(name, RTLD_NOW | RTLD_LOCAL)
    }
    guard let handle = unsafe opened else {
      let reason = unsafe dlerror().map { unsafe String(cString: $0) } ?? names[0]
      throw ArchiveError(.noErasureLibrary(reason))
    }
    var functions = carpack_isal()
    if let missing = unsafe carpack_isal_look_up(&functions, handle) {
      throw ArchiveError(.noErasureLibrary("it lacks \(unsafe String(cString: missing))"))
    }
    return ErasureLibrary(functions: functions)
  }

  /// The inverse of a number in the field: the C function `gf_inv`.
  func inverse(_ number: UInt8) -> UInt8 { functions.gf_inv(number) }

  /// The inverse of a square matrix, row by row; nil if it has none: the C function
  /// `gf_invert_matrix`.
  func inverse(_ matrix: [UInt8], size: Int) -> [UInt8]? {
    var (given, inverse) = (matrix, matrix)
    return unsafe functions.gf_invert_matrix(&given, &inverse, CInt(size)) == 0 ? inverse : nil
  }

  /// What ``multiply(_:columns:rows:by:into:length:)`` needs to know of a matrix: the C function
  /// `ec_init_tables`.
  func tables(_ matrix: [UInt8], columns: Int, rows: Int) -> [UInt8] {
    var (matrix, tables) = (matrix, [UInt8](repeating: 0, count: 32 * columns * rows))
    unsafe functions.ec_init_tables(CInt(columns), CInt(rows), &matrix, &tables)
    return tables
  }

  /// Multiplies a matrix by rows of bytes: the C function `ec_encode_data`.
  ///
  /// - Parameters:
  ///   - tables: What was made of the matrix.
  ///   - input: Where each of the rows begins that it is multiplied by, one for each column.
  ///   - output: Where each row of the product begins.
  ///   - length: How many bytes a row has.
  func multiply(
    _ tables: inout [UInt8], by input: inout [UnsafeMutablePointer<UInt8>?],
    into output: inout [UnsafeMutablePointer<UInt8>?], length: Int
  ) {
    unsafe functions.ec_encode_data(
      CInt(length), CInt(input.count), CInt(output.count), &tables, &input, &output)
  }
}
