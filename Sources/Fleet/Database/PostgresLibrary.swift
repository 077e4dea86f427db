internal import LibC

/// libpq, PostgreSQL's own client, opened when it is first needed (`dlopen`), and the functions of
/// it that are used.
///
/// Nothing links it, and no header is needed: its interface has been the same for twenty years.
///
/// Source: [libpq, C Library](https://www.postgresql.org/docs/current/libpq.html).
@safe
struct PostgresLibrary: @unchecked Sendable {
  typealias Connection = OpaquePointer
  typealias Answer = OpaquePointer
  typealias Text = UnsafePointer<CChar>

  let connect: @convention(c) (UnsafePointer<Text?>?, UnsafePointer<Text?>?, CInt) -> Connection?
  let status: @convention(c) (Connection?) -> CInt
  let errorMessage: @convention(c) (Connection?) -> UnsafeMutablePointer<CChar>?
  let finish: @convention(c) (Connection?) -> Void
  let setNonBlocking: @convention(c) (Connection?, CInt) -> CInt
  let socket: @convention(c) (Connection?) -> CInt
  let sendQuery:
    @convention(c) (
      Connection?, Text?, CInt, UnsafeRawPointer?, UnsafePointer<Text?>?, UnsafePointer<CInt>?,
      UnsafePointer<CInt>?, CInt
    ) -> CInt
  let flush: @convention(c) (Connection?) -> CInt
  let consumeInput: @convention(c) (Connection?) -> CInt
  let isBusy: @convention(c) (Connection?) -> CInt
  let result: @convention(c) (Connection?) -> Answer?
  let resultStatus: @convention(c) (Answer?) -> CInt
  let errorField: @convention(c) (Answer?, CInt) -> UnsafeMutablePointer<CChar>?
  let rowCount: @convention(c) (Answer?) -> CInt
  let columnCount: @convention(c) (Answer?) -> CInt
  let value: @convention(c) (Answer?, CInt, CInt) -> UnsafeMutablePointer<CChar>?
  let isNull: @convention(c) (Answer?, CInt, CInt) -> CInt
  let clear: @convention(c) (Answer?) -> Void

  /// `CONNECTION_OK`.
  static let connectionIsOpen: CInt = 0
  /// `PGRES_COMMAND_OK` and `PGRES_TUPLES_OK`.
  static let good: ClosedRange<CInt> = 1...2
  /// `PG_DIAG_SQLSTATE`.
  static let state = CInt(UInt8(ascii: "C"))
  /// `PG_DIAG_MESSAGE_PRIMARY`.
  static let message = CInt(UInt8(ascii: "M"))

  /// The library, or why there is none.
  static let shared: Result<PostgresLibrary, DatabaseError> = Result {
    () throws(DatabaseError) in try open()
  }

  #if canImport(Darwin)
    private static let names = [
      "libpq.5.dylib", "/opt/homebrew/opt/libpq/lib/libpq.5.dylib",
      "/usr/local/opt/libpq/lib/libpq.5.dylib",
    ]
  #else
    private static let names = ["libpq.so.5"]
  #endif

  private static func open() throws(DatabaseError) -> PostgresLibrary {
    var opened: UnsafeMutableRawPointer?
    for name in names where unsafe opened == nil {
      unsafe opened = dlopen(name, RTLD_NOW | RTLD_LOCAL)
    }
    guard let handle = unsafe opened else {
      let why = unsafe dlerror().map { unsafe String(cString: $0) } ?? names[0]
      throw DatabaseError(.library, "PostgreSQL's client library is not here: \(why)")
    }
    func function<F>(_ name: String, as type: F.Type) throws(DatabaseError) -> F {
      guard let symbol = unsafe dlsym(handle, name) else {
        throw DatabaseError(.library, "PostgreSQL's client library has no \(name)")
      }
      return unsafe unsafeBitCast(symbol, to: type)
    }
    return unsafe PostgresLibrary(
      connect: try function(
        "PQconnectdbParams",
        as: (@convention(c) (UnsafePointer<Text?>?, UnsafePointer<Text?>?, CInt) -> Connection?)
          .self),
      status: try function("PQstatus", as: (@convention(c) (Connection?) -> CInt).self),
      errorMessage: try function(
        "PQerrorMessage",
        as: (@convention(c) (Connection?) -> UnsafeMutablePointer<CChar>?).self),
      finish: try function("PQfinish", as: (@convention(c) (Connection?) -> Void).self),
      setNonBlocking: try function(
        "PQsetnonblocking", as: (@convention(c) (Connection?, CInt) -> CInt).self),
      socket: try function("PQsocket", as: (@convention(c) (Connection?) -> CInt).self),
      sendQuery: try function(
        "PQsendQueryParams",
        as: (@convention(c) (
          Connection?, Text?, CInt, UnsafeRawPointer?, UnsafePointer<Text?>?, UnsafePointer<CInt>?,
          UnsafePointer<CInt>?, CInt
        ) -> CInt).self),
      flush: try function("PQflush", as: (@convention(c) (Connection?) -> CInt).self),
      consumeInput: try function("PQconsumeInput", as: (@convention(c) (Connection?) -> CInt).self),
      isBusy: try function("PQisBusy", as: (@convention(c) (Connection?) -> CInt).self),
      result: try function("PQgetResult", as: (@convention(c) (Connection?) -> Answer?).self),
      resultStatus: try function("PQresultStatus", as: (@convention(c) (Answer?) -> CInt).self),
      errorField: try function(
        "PQresultErrorField",
        as: (@convention(c) (Answer?, CInt) -> UnsafeMutablePointer<CChar>?).self),
      rowCount: try function("PQntuples", as: (@convention(c) (Answer?) -> CInt).self),
      columnCount: try function("PQnfields", as: (@convention(c) (Answer?) -> CInt).self),
      value: try function(
        "PQgetvalue",
        as: (@convention(c) (Answer?, CInt, CInt) -> UnsafeMutablePointer<CChar>?).self),
      isNull: try function(
        "PQgetisnull", as: (@convention(c) (Answer?, CInt, CInt) -> CInt).self),
      clear: try function("PQclear", as: (@convention(c) (Answer?) -> Void).self))
  }
}
