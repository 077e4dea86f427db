/* What glibc's allocator gives back to the system, and when; other allocators decide that themselves. */
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

static inline void carpack_keep_freed_memory(int mmap_threshold, int trim_threshold, int arenas) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, mmap_threshold);
  mallopt(M_TRIM_THRESHOLD, trim_threshold);
  mallopt(M_ARENA_MAX, arenas);
#endif
}
