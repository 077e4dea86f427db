import GRDB
struct T {}
