#include "pager.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

// What the handler does is what POSIX lets a handler do: it looks at numbers, writes to a pipe and
// reads from another. The page is brought by the thread at the pipe's end, while the one that
// touched it waits in the handler; then the instruction that touched it is done again.

#define MAXIMUM_WINDOWS 1024

static struct {
  // 0 while there is none.
  atomic_uintptr_t start;
  atomic_uintptr_t end;
} windows[MAXIMUM_WINDOWS];

static int faults[2] = {-1, -1};
static struct sigaction earlier_segv, earlier_bus;

static int write_all(int descriptor, const void *bytes, size_t count) {
  // Fewer bytes than PIPE_BUF are written all at once.
  ssize_t written;
  do {
    written = write(descriptor, bytes, count);
  } while (written < 0 && errno == EINTR);
  return written == (ssize_t)count ? 0 : -1;
}

static int read_all(int descriptor, void *bytes, size_t count) {
  ssize_t got;
  do {
    got = read(descriptor, bytes, count);
  } while (got < 0 && errno == EINTR);
  return got == (ssize_t)count ? 0 : -1;
}

static int is_in_window(uintptr_t address) {
  for (int number = 0; number < MAXIMUM_WINDOWS; number++) {
    uintptr_t start = atomic_load(&windows[number].start);
    if (start != 0 && start <= address && address < atomic_load(&windows[number].end)) return 1;
  }
  return 0;
}

static int bring(uintptr_t address) {
  int answer[2];
  if (pipe(answer) != 0) return -1;
  struct carpack_page_fault fault = {address, answer[1]};
  char word;
  int result = write_all(faults[1], &fault, sizeof fault);
  if (result == 0) result = read_all(answer[0], &word, 1);
  close(answer[0]);
  close(answer[1]);
  return result;
}

static void handle(int signal, siginfo_t *info, void *context) {
  (void)context;
  int saved = errno;
  uintptr_t address = (uintptr_t)info->si_addr;
  if (!is_in_window(address) || bring(address) != 0) {
    // Not a page of ours: what was to happen before happens when the instruction is done again.
    sigaction(signal, signal == SIGSEGV ? &earlier_segv : &earlier_bus, NULL);
  }
  errno = saved;
}

static int result;

static void open_once(void) {
  if (pipe(faults) != 0) {
    result = errno;
    return;
  }
  for (int end = 0; end < 2; end++) fcntl(faults[end], F_SETFD, FD_CLOEXEC);
  struct sigaction action = {0};
  action.sa_sigaction = handle;
  // Several threads may wait at a time, each in a handler of its own.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGSEGV, &action, &earlier_segv) != 0 ||
      sigaction(SIGBUS, &action, &earlier_bus) != 0)
    result = errno;
}

int carpack_pager_open(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_once);
  return result;
}

int carpack_pager_next(struct carpack_page_fault *fault) {
  return read_all(faults[0], fault, sizeof *fault) == 0 ? 0 : errno == 0 ? EIO : errno;
}

void carpack_pager_answer(struct carpack_page_fault fault) {
  char word = 1;
  // The thread reads it: it cannot have gone on without.
  if (write_all(fault.reply, &word, 1) != 0) abort();
}

int carpack_pager_add(uintptr_t start, size_t length) {
  for (int number = 0; number < MAXIMUM_WINDOWS; number++) {
    uintptr_t free = 0;
    // A window that is being made begins where nothing lies.
    if (!atomic_compare_exchange_strong(&windows[number].start, &free, UINTPTR_MAX)) continue;
    atomic_store(&windows[number].end, start + length);
    atomic_store(&windows[number].start, start);
    return number;
  }
  return -1;
}

void carpack_pager_remove(int number) {
  atomic_store(&windows[number].start, 0);
}
