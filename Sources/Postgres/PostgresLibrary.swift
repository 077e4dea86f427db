internal import LibC

/// The functions of libpq, PostgreSQL's client library, which is opened when it is first used
/// (`dlopen`).
///
/// Nothing links it, and no header is needed: its interface has been the same for twenty years.
///
/// Source: [libpq, C Library](https://www.postgresql.org/docs/current/libpq.html).
@safe
struct PostgresLibrary: @unchecked Sendable {
  typealias Connection = OpaquePointer
  typealias Answer = OpaquePointer
  typealias Text = UnsafePointer<CChar>
  typealias Buffer = UnsafeMutablePointer<CChar>

  let connect: @convention(c) (UnsafePointer<Text?>?, UnsafePointer<Text?>?, CInt) -> Connection?
  let status: @convention(c) (Connection?) -> CInt
  let errorMessage: @convention(c) (Connection?) -> Buffer?
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
  let errorField: @convention(c) (Answer?, CInt) -> Buffer?
  let rowCount: @convention(c) (Answer?) -> CInt
  let columnCount: @convention(c) (Answer?) -> CInt
  let value: @convention(c) (Answer?, CInt, CInt) -> Buffer?
  let isNull: @convention(c) (Answer?, CInt, CInt) -> CInt
  let clear: @convention(c) (Answer?) -> Void
  let cancelData: @convention(c) (Connection?) -> OpaquePointer?
  let cancel: @convention(c) (OpaquePointer?, Buffer?, CInt) -> CInt
  let freeCancelData: @convention(c) (OpaquePointer?) -> Void

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
    () throws(DatabaseError) in try PostgresLibrary()
  }

  #if canImport(Darwin)
    private static let names = [
      "libpq.5.dylib", "/opt/homebrew/opt/libpq/lib/libpq.5.dylib",
      "/usr/local/opt/libpq/lib/libpq.5.dylib",
    ]
  #else
    private static let names = ["libpq.so.5"]
  #endif

  private init() throws(DatabaseError) {
    var opened: UnsafeMutableRawPointer?
    for name in Self.names where unsafe opened == nil {
      unsafe opened = dlopen(name, RTLD_NOW | RTLD_LOCAL)
    }
    guard let handle = unsafe opened else {
      let why = unsafe dlerror().map { unsafe String(cString: $0) } ?? Self.names[0]
      throw DatabaseError(.library, "PostgreSQL's client library is missing: \(why)")
    }
    func find<F>(_ name: String) throws(DatabaseError) -> F {
      guard let symbol = unsafe dlsym(handle, name) else {
        throw DatabaseError(.library, "PostgreSQL's client library has no \(name)")
      }
      return unsafe unsafeBitCast(symbol, to: F.self)
    }
    unsafe connect = try find("PQconnectdbParams")
    unsafe status = try find("PQstatus")
    unsafe errorMessage = try find("PQerrorMessage")
    unsafe finish = try find("PQfinish")
    unsafe setNonBlocking = try find("PQsetnonblocking")
    unsafe socket = try find("PQsocket")
    unsafe sendQuery = try find("PQsendQueryParams")
    unsafe flush = try find("PQflush")
    unsafe consumeInput = try find("PQconsumeInput")
    unsafe isBusy = try find("PQisBusy")
    unsafe result = try find("PQgetResult")
    unsafe resultStatus = try find("PQresultStatus")
    unsafe errorField = try find("PQresultErrorField")
    unsafe rowCount = try find("PQntuples")
    unsafe columnCount = try find("PQnfields")
    unsafe value = try find("PQgetvalue")
    unsafe isNull = try find("PQgetisnull")
    unsafe clear = try find("PQclear")
    unsafe cancelData = try find("PQgetCancel")
    unsafe cancel = try find("PQcancel")
    unsafe freeCancelData = try find("PQfreeCancel")
  }
}
