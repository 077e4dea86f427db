/* What glibc and Linux offer, and Swift's own module of them leaves out. On other systems these do
   nothing. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef __APPLE__
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* What the allocator gives back to the system, and when. */
static inline void carpack_keep_freed_memory(int mmap_threshold, int trim_threshold, int arenas) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, mmap_threshold);
  mallopt(M_TRIM_THRESHOLD, trim_threshold);
  mallopt(M_ARENA_MAX, arenas);
#endif
}

/* Gives back to the system what was freed, from the middle of the heaps as well. */
static inline void carpack_return_freed_memory(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

/* Begins to bring a part of a file to the medium, without waiting: sync_file_range with
   SYNC_FILE_RANGE_WRITE. Where an argument of 64 bits takes two registers, the call is another;
   nothing is lost by leaving it out there. */
static inline void carpack_begin_synchronizing(int descriptor, int64_t offset, int64_t length) {
#if defined(__GLIBC__) && defined(SYS_sync_file_range) && __SIZEOF_LONG__ == 8
  (void)syscall(SYS_sync_file_range, descriptor, offset, length, 2);
#endif
}

/* Gives back the room that a part of a file takes, which is read as zeros then: fallocate with
   FALLOC_FL_PUNCH_HOLE and FALLOC_FL_KEEP_SIZE. Where an argument of 64 bits takes two registers,
   the call is another; the room is kept there. */
static inline void carpack_punch_hole(int descriptor, int64_t offset, int64_t length) {
#if defined(__GLIBC__) && defined(SYS_fallocate) && __SIZEOF_LONG__ == 8
  (void)syscall(SYS_fallocate, descriptor, 3, offset, length);
#endif
}

/* Moves pages of memory to another place, over what is there, and leaves empty ones: mremap with
   MREMAP_MAYMOVE, MREMAP_FIXED and MREMAP_DONTUNMAP. Where there is no such call, and on other
   systems, nothing is moved, and it fails. */
static inline int carpack_move_pages(void *from, void *to, size_t length) {
#if defined(__GLIBC__) && defined(SYS_mremap)
  return syscall(SYS_mremap, from, length, length, 7, to) == -1 ? -1 : 0;
#else
  return -1;
#endif
}

/* Brings everything that was written to a file system to its medium: syncfs, given an open file or
   folder on it. */
static inline int carpack_synchronize_file_system(int descriptor) {
#if defined(__GLIBC__) && defined(SYS_syncfs)
  return (int)syscall(SYS_syncfs, descriptor);
#else
  return -1;
#endif
}

/* Sets an extended attribute of a file: setxattr. Where there is no such call, and on other
   systems, it fails without touching errno. */
static inline int carpack_set_attribute(const char *path, const char *name, const void *value, size_t size) {
#if defined(__GLIBC__) && defined(SYS_setxattr)
  return (int)syscall(SYS_setxattr, path, name, value, size, 0);
#else
  return -1;
#endif
}

/* Reads an extended attribute of a file: getxattr. It answers its length, or fails as the other
   does. */
static inline int64_t carpack_attribute(const char *path, const char *name, void *value, size_t size) {
#if defined(__GLIBC__) && defined(SYS_getxattr)
  return syscall(SYS_getxattr, path, name, value, size);
#else
  return -1;
#endif
}

/* As carpack_rename_exclusively() below, from one open folder into another. */
static inline int carpack_rename_exclusively_in(int folder, const char *from, int into, const char *to) {
#if defined(__GLIBC__) && defined(SYS_renameat2)
  return (int)syscall(SYS_renameat2, folder, from, into, to, 1);
#else
  return -1;
#endif
}

/* Renames a file unless something has the new name: renameat2 with RENAME_NOREPLACE. Fails with
   EINVAL where the file system cannot. Where there is no such call, and on other systems, it fails
   without touching errno. Both paths are relative to the current folder, AT_FDCWD, whose header
   would make this module the owner of half the C library. */
static inline int carpack_rename_exclusively(const char *from, const char *to) {
#if defined(__GLIBC__) && defined(SYS_renameat2)
  return (int)syscall(SYS_renameat2, -100, from, -100, to, 1);
#else
  return -1;
#endif
}

/* A file that lies in memory and has no name, or the negative of what errno would be: memfd_create
   with MFD_CLOEXEC. On other systems an object of shared memory that loses its name at once. */
static inline int carpack_memory_file(void) {
#if defined(__GLIBC__) && defined(SYS_memfd_create)
  int file = (int)syscall(SYS_memfd_create, "carpack", 1U);
  return file < 0 ? -errno : file;
#elif defined(__APPLE__)
  char name[32];
  snprintf(name, sizeof name, "/carpack-%08x%08x", arc4random(), arc4random());
  int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0) return -errno;
  shm_unlink(name);
  fcntl(file, F_SETFD, FD_CLOEXEC);
  return file;
#else
  return -ENOSYS;
#endif
}
