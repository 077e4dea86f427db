#ifndef CARPACK_SHA256_LANES_H
#define CARPACK_SHA256_LANES_H

#include <stddef.h>
#include <stdint.h>

/* Whether this processor has the instructions that carpack_sha256_lanes takes. */
int carpack_sha256_has_lanes(void);

/*
 * The SHA-256 digests (FIPS 180-4) of `count` messages, two at a time.
 *
 * Message i is the bytes of `base` from `bounds[2 * i]` to before `bounds[2 * i + 1]`; its 32 bytes
 * go to `digests + 32 * i`. Call it only where carpack_sha256_has_lanes() says so.
 */
void carpack_sha256_lanes(const uint8_t *base, const size_t *bounds, size_t count,
                          uint8_t *digests);

/*
 * A message that arrives in pieces. As large as libcrypto's SHA256_CTX, which takes its place where
 * there are no such instructions.
 */
typedef struct {
  uint32_t abef[4], cdgh[4]; /* the state, in the order of the instructions */
  uint64_t length;           /* of the message so far */
  uint8_t block[64];         /* what there is of a block that is not whole yet */
  uint64_t unused;
} carpack_sha256_message;

/* Begins a message, adds to it, and gives its digest of 32 bytes. The rules of
   carpack_sha256_lanes() hold. */
void carpack_sha256_begin(carpack_sha256_message *message);
void carpack_sha256_add(carpack_sha256_message *message, const uint8_t *bytes, size_t count);
void carpack_sha256_end(carpack_sha256_message *message, uint8_t *digest);

#endif
