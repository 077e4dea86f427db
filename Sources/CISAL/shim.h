/* Types only; ISA-L itself is opened when parity is first made or used (ErasureLibrary.swift), so
   that reading an archive does not need it. */
#include <dlfcn.h>
#include <isa-l/erasure_code.h>
#include <stddef.h>

/* The functions of ISA-L that are used, each under its own name and of its own type. */
#define CARPACK_ISAL_FUNCTIONS(ONE) \
  ONE(ec_init_tables) \
  ONE(ec_encode_data) \
  ONE(gf_inv) \
  ONE(gf_invert_matrix)

struct carpack_isal {
#define ONE(name) __typeof__(name) *name;
  CARPACK_ISAL_FUNCTIONS(ONE)
#undef ONE
};

/* Looks the functions up in an opened library; gives the name of one that is missing, or NULL. */
static inline const char *carpack_isal_look_up(struct carpack_isal *isal, void *library) {
#define ONE(function) \
  if (!(isal->function = (__typeof__(function) *)dlsym(library, #function))) return #function;
  CARPACK_ISAL_FUNCTIONS(ONE)
#undef ONE
  return NULL;
}
