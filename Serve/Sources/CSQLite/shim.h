#include <sqlite3.h>

// SQLITE_TRANSIENT is a cast, which Swift does not see: SQLite copies what is bound.
static inline int carpack_bind_text(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 length) {
  return sqlite3_bind_text64(statement, index, bytes, length, SQLITE_TRANSIENT, SQLITE_UTF8);
}
static inline int carpack_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 length) {
  return sqlite3_bind_blob64(statement, index, length == 0 ? "" : bytes, length, SQLITE_TRANSIENT);
}
