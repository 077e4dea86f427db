/* The low-level SHA-256 functions are declared deprecated since OpenSSL 3.0 and are still what hashes a
   250-byte block fastest: no provider to load at start-up, no indirection for each message. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
