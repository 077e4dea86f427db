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

#endif
