#include "arguments.h"
#include <stdlib.h> /* says whether this is glibc */

static int count;
static char **arguments;

/* glibc and dyld call constructors with the arguments of main; other C libraries without. */
#if defined(__GLIBC__) || defined(__APPLE__)
__attribute__((constructor)) static void remember(int argc, char **argv) {
  count = argc;
  arguments = argv;
}
#endif

int carpack_argument_count(void) { return count; }

const char *carpack_argument(int number) { return arguments[number]; }
