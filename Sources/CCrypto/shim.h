/* The low-level SHA-256 functions are declared deprecated since OpenSSL 3.0 and are still what hashes a
   250-byte block fastest: no provider to load at start-up, no indirection for each message. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

/* A public key of an elliptic curve from its point, or NULL if the point does not lie on it; free with EVP_PKEY_free. Parameters point
   into one another, and EVP_PKEY_PUBLIC_KEY is a macro of a kind that Swift does not import. */
static inline EVP_PKEY *carpack_ec_public_key(const char *group, const unsigned char *point, size_t length) {
  EVP_PKEY *key = NULL;
  OSSL_PARAM parameters[] = {
    OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)group, 0),
    OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)point, length),
    OSSL_PARAM_construct_end(),
  };
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
  if (context != NULL && EVP_PKEY_fromdata_init(context) == 1)
    (void)EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters);
  EVP_PKEY_CTX_free(context);
  return key;
}

/* Arithmetic on curves, with which the tests sign. */
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/obj_mac.h>
