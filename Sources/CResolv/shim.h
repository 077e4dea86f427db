/* The system's DNS resolver, for TXT records: getaddrinfo knows addresses only. */
#include <sys/types.h>
#include <netinet/in.h>
#include <arpa/nameser.h>
#include <resolv.h>
#include <netdb.h>
#include <string.h>

/* Asks for the TXT records of a name, as it stands, and leaves the answer as it came. Returns how
   long it is, which may be more than there was room for, or -1 with one of netdb.h's
   HOST_NOT_FOUND, NO_DATA, TRY_AGAIN and NO_RECOVERY in *error. Each server of resolv.conf is asked
   twice and given this many seconds. The resolver's functions are macros. */
static inline int carpack_txt_query(const char *name, unsigned char *answer, int capacity, int seconds, int *error) {
#if defined(__GLIBC__) || defined(__APPLE__)
  struct __res_state state;
  memset(&state, 0, sizeof state);
  *error = NO_RECOVERY;
  if (res_ninit(&state) != 0) return -1;
  state.retrans = seconds;
  state.retry = 2;
  int length = res_nquery(&state, name, ns_c_in, ns_t_txt, answer, capacity);
  *error = state.res_h_errno;
#ifdef __APPLE__
  res_ndestroy(&state);
#else
  res_nclose(&state);
#endif
  return length;
#else
  int length = res_query(name, ns_c_in, ns_t_txt, answer, capacity);
  (void)seconds;
  *error = h_errno;
  return length;
#endif
}
