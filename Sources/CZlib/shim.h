#include <zlib.h>

// A macro, which Swift does not see: windows of up to 32 KiB, and the header and trailer of gzip.
static inline int carpack_inflate_init_gzip(z_stream *stream) { return inflateInit2(stream, 15 + 16); }
