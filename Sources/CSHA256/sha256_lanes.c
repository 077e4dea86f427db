#include "sha256_lanes.h"

/*
 * A block of SHA-256 takes its time for each step waits for the one before, and not for want of
 * arithmetic units: another message's block fits into the gaps. So there are two lanes, each of
 * which goes on with the next message when it is done with one.
 */

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

#define LANES __attribute__((target("sha,sse4.1,ssse3")))

int carpack_sha256_has_lanes(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
  return (b >> 29) & 1;
}

/* The 64 constants (FIPS 180-4, section 4.2.2). */
static const uint32_t constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* A message on its way. The state lies as the instructions have it: words A B E F, and C D G H. */
struct lane {
  __m128i abef, cdgh;
  const uint8_t *next; /* the next block */
  size_t blocks;       /* how many follow one another from there */
  uint8_t tail[128];   /* the padded end, one block or two */
  size_t tail_blocks;  /* how many of them are still to come */
  uint8_t *digest;
};

/* One step of the message schedule and four rounds, of each of `n` lanes. `i` is 0 to 15. */
#define ROUNDS(i, n)                                                                              \
  for (int l = 0; l < (n); l++) {                                                                 \
    if ((i) < 4) {                                                                                \
      w[l][(i)&3] = _mm_shuffle_epi8(                                                             \
          _mm_loadu_si128((const __m128i *)(lanes[l]->next) + (i)), byte_order);                  \
    } else {                                                                                      \
      __m128i mixed = _mm_add_epi32(                                                              \
          _mm_sha256msg1_epu32(w[l][(i)&3], w[l][((i) + 1) & 3]),                                 \
          _mm_alignr_epi8(w[l][((i) + 3) & 3], w[l][((i) + 2) & 3], 4));                          \
      w[l][(i)&3] = _mm_sha256msg2_epu32(mixed, w[l][((i) + 3) & 3]);                             \
    }                                                                                             \
    __m128i k = _mm_add_epi32(w[l][(i)&3], _mm_load_si128((const __m128i *)constants + (i)));     \
    cdgh[l] = _mm_sha256rnds2_epu32(cdgh[l], abef[l], k);                                         \
    abef[l] = _mm_sha256rnds2_epu32(abef[l], cdgh[l], _mm_shuffle_epi32(k, 0x0e));                \
  }

#define FOUR_ROUNDS(i, n) ROUNDS(i, n) ROUNDS(i + 1, n) ROUNDS(i + 2, n) ROUNDS(i + 3, n)

/* One block of each of `n` lanes, which is a constant where it is called. */
LANES static inline __attribute__((always_inline)) void compress(struct lane *lanes[2], int n) {
  const __m128i byte_order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i abef[2], cdgh[2], w[2][4];
  for (int l = 0; l < n; l++) {
    abef[l] = lanes[l]->abef;
    cdgh[l] = lanes[l]->cdgh;
  }
  FOUR_ROUNDS(0, n)
  FOUR_ROUNDS(4, n)
  FOUR_ROUNDS(8, n)
  FOUR_ROUNDS(12, n)
  for (int l = 0; l < n; l++) {
    lanes[l]->abef = _mm_add_epi32(lanes[l]->abef, abef[l]);
    lanes[l]->cdgh = _mm_add_epi32(lanes[l]->cdgh, cdgh[l]);
  }
}

/* The initial values (FIPS 180-4, section 5.3.3). */
#define INITIAL_ABEF _mm_set_epi32(0x6a09e667, (int)0xbb67ae85, 0x510e527f, (int)0x9b05688c)
#define INITIAL_CDGH _mm_set_epi32(0x3c6ef372, (int)0xa54ff53a, 0x1f83d9ab, 0x5be0cd19)

/* The end of a message (section 5.1.1): what is left of it after whole blocks, a bit, zeros, and
   the length in bits. */
static void pad(struct lane *lane, const uint8_t *left, uint64_t length) {
  size_t rest = length % 64;
  lane->tail_blocks = rest < 56 ? 1 : 2;
  size_t padded = 64 * lane->tail_blocks;
  if (rest > 0) memcpy(lane->tail, left, rest);
  lane->tail[rest] = 0x80;
  memset(lane->tail + rest + 1, 0, padded - rest - 9);
  uint64_t bits = __builtin_bswap64(length * 8);
  memcpy(lane->tail + padded - 8, &bits, 8);
}

LANES static void begin(struct lane *lane, const uint8_t *message, size_t length, uint8_t *digest) {
  lane->abef = INITIAL_ABEF;
  lane->cdgh = INITIAL_CDGH;
  lane->next = message;
  lane->blocks = length / 64;
  lane->digest = digest;
  pad(lane, message + length / 64 * 64, length);
  if (lane->blocks == 0) {
    lane->next = lane->tail;
    lane->blocks = lane->tail_blocks;
    lane->tail_blocks = 0;
  }
}

LANES static void end(struct lane *lane) {
  /* All bytes the other way round, A B E F and C D G H stand as the digest has them. */
  const __m128i byte_order = _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f);
  __m128i abef = _mm_shuffle_epi8(lane->abef, byte_order);
  __m128i cdgh = _mm_shuffle_epi8(lane->cdgh, byte_order);
  _mm_storeu_si128((__m128i *)lane->digest, _mm_unpacklo_epi64(abef, cdgh));
  _mm_storeu_si128((__m128i *)lane->digest + 1, _mm_unpackhi_epi64(abef, cdgh));
}

/* Goes to the block after `count` blocks; 0 at the end of the message. */
static inline int advance(struct lane *lane, size_t count) {
  lane->next += 64 * count;
  lane->blocks -= count;
  if (lane->blocks > 0) return 1;
  if (lane->tail_blocks == 0) return 0;
  lane->next = lane->tail;
  lane->blocks = lane->tail_blocks;
  lane->tail_blocks = 0;
  return 1;
}

LANES void carpack_sha256_lanes(const uint8_t *base, const size_t *bounds, size_t count,
                                uint8_t *digests) {
  struct lane storage[2];
  struct lane *lanes[2] = {&storage[0], &storage[1]};
  size_t begun = 0;
  int busy = 0;
  while (busy < 2 && begun < count) {
    begin(lanes[busy++], base + bounds[2 * begun], bounds[2 * begun + 1] - bounds[2 * begun],
          digests + 32 * begun);
    begun++;
  }
  while (busy == 2) {
    compress(lanes, 2);
    for (int l = 1; l >= 0; l--) {
      struct lane *lane = lanes[l];
      if (advance(lane, 1)) continue;
      end(lane);
      if (begun < count) {
        begin(lane, base + bounds[2 * begun], bounds[2 * begun + 1] - bounds[2 * begun],
              digests + 32 * begun);
        begun++;
      } else {
        /* The lane that is left, if any, becomes the first. */
        lanes[l] = lanes[--busy];
        lanes[busy] = lane;
      }
    }
  }
  if (busy == 1) {
    do { compress(lanes, 1); } while (advance(lanes[0], 1));
    end(lanes[0]);
  }
}

/* Some blocks of a message that arrives in pieces. */
LANES static void add_blocks(carpack_sha256_message *message, const uint8_t *bytes, size_t count) {
  struct lane lane, *lanes[2] = {&lane, NULL};
  lane.abef = _mm_loadu_si128((const __m128i *)message->abef);
  lane.cdgh = _mm_loadu_si128((const __m128i *)message->cdgh);
  lane.next = bytes;
  for (; count > 0; count--) {
    compress(lanes, 1);
    lane.next += 64;
  }
  _mm_storeu_si128((__m128i *)message->abef, lane.abef);
  _mm_storeu_si128((__m128i *)message->cdgh, lane.cdgh);
}

LANES void carpack_sha256_begin(carpack_sha256_message *message) {
  _mm_storeu_si128((__m128i *)message->abef, INITIAL_ABEF);
  _mm_storeu_si128((__m128i *)message->cdgh, INITIAL_CDGH);
  message->length = 0;
}

void carpack_sha256_add(carpack_sha256_message *message, const uint8_t *bytes, size_t count) {
  if (count == 0) return;
  size_t rest = message->length % 64;
  message->length += count;
  if (rest > 0) {
    size_t taken = count < 64 - rest ? count : 64 - rest;
    memcpy(message->block + rest, bytes, taken);
    if (rest + taken < 64) return;
    add_blocks(message, message->block, 1);
    bytes += taken;
    count -= taken;
  }
  add_blocks(message, bytes, count / 64);
  if (count % 64 > 0) memcpy(message->block, bytes + count / 64 * 64, count % 64);
}

LANES void carpack_sha256_end(carpack_sha256_message *message, uint8_t *digest) {
  struct lane lane, *lanes[2] = {&lane, NULL};
  lane.abef = _mm_loadu_si128((const __m128i *)message->abef);
  lane.cdgh = _mm_loadu_si128((const __m128i *)message->cdgh);
  lane.digest = digest;
  pad(&lane, message->block, message->length);
  lane.next = lane.tail;
  for (; lane.tail_blocks > 0; lane.tail_blocks--) {
    compress(lanes, 1);
    lane.next += 64;
  }
  end(&lane);
}

#else

int carpack_sha256_has_lanes(void) { return 0; }

void carpack_sha256_lanes(const uint8_t *base, const size_t *bounds, size_t count,
                          uint8_t *digests) {
  (void)base, (void)bounds, (void)count, (void)digests;
}

void carpack_sha256_begin(carpack_sha256_message *message) { (void)message; }

void carpack_sha256_add(carpack_sha256_message *message, const uint8_t *bytes, size_t count) {
  (void)message, (void)bytes, (void)count;
}

void carpack_sha256_end(carpack_sha256_message *message, uint8_t *digest) {
  (void)message, (void)digest;
}

#endif
