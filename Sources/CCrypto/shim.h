/* libcrypto, opened when it is first needed: it takes a quarter of the start of a process, and where the processor has instructions for SHA-256
   it is needed for signatures only. Each structure below has some of its functions, with the types that OpenSSL declares them with. */

/* The low-level SHA-256 functions are declared deprecated since OpenSSL 3.0 and are still what hashes a
   250-byte block fastest: no provider to load at start-up, no indirection for each message. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/opensslv.h>
#include <openssl/sha.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <dlfcn.h>

/* The library that these headers belong to; NULL if there is none, and dlerror() says why. It stays open until the process ends. */
static inline void *carpack_crypto_open(void) {
#ifdef __APPLE__
  return RTLD_DEFAULT; /* linked */
#else
#define CARPACK_TEXT(number) #number
#define CARPACK_SONAME(number) "libcrypto.so." CARPACK_TEXT(number)
  return dlopen(CARPACK_SONAME(OPENSSL_SHLIB_VERSION), RTLD_LAZY | RTLD_LOCAL);
#endif
}

#define CARPACK_FIND(functions, name) \
  ((functions)->name = (__typeof__((functions)->name))dlsym(library, #name)) != NULL

/* SHA-256 of a message as it arrives. */
typedef struct {
  __typeof__(&SHA256_Init) SHA256_Init;
  __typeof__(&SHA256_Update) SHA256_Update;
  __typeof__(&SHA256_Final) SHA256_Final;
} carpack_digest_functions;

/* Whether all of them were found. */
static inline int carpack_find_digest_functions(void *library, carpack_digest_functions *found) {
  return CARPACK_FIND(found, SHA256_Init) && CARPACK_FIND(found, SHA256_Update) && CARPACK_FIND(found, SHA256_Final);
}

/* Keys on curves, and signatures. */
typedef struct {
  __typeof__(&ERR_clear_error) ERR_clear_error;
  __typeof__(&EVP_PKEY_CTX_free) EVP_PKEY_CTX_free;
  __typeof__(&EVP_PKEY_CTX_new) EVP_PKEY_CTX_new;
  __typeof__(&EVP_PKEY_CTX_new_from_name) EVP_PKEY_CTX_new_from_name;
  __typeof__(&EVP_PKEY_free) EVP_PKEY_free;
  __typeof__(&EVP_PKEY_fromdata) EVP_PKEY_fromdata;
  __typeof__(&EVP_PKEY_fromdata_init) EVP_PKEY_fromdata_init;
  __typeof__(&EVP_PKEY_verify) EVP_PKEY_verify;
  __typeof__(&EVP_PKEY_verify_init) EVP_PKEY_verify_init;
  __typeof__(&OSSL_PARAM_construct_end) OSSL_PARAM_construct_end;
  __typeof__(&OSSL_PARAM_construct_octet_string) OSSL_PARAM_construct_octet_string;
  __typeof__(&OSSL_PARAM_construct_utf8_string) OSSL_PARAM_construct_utf8_string;
} carpack_signature_functions;

/* Whether all of them were found. */
static inline int carpack_find_signature_functions(void *library, carpack_signature_functions *found) {
  return CARPACK_FIND(found, ERR_clear_error) && CARPACK_FIND(found, EVP_PKEY_CTX_free) &&
         CARPACK_FIND(found, EVP_PKEY_CTX_new) && CARPACK_FIND(found, EVP_PKEY_CTX_new_from_name) &&
         CARPACK_FIND(found, EVP_PKEY_free) && CARPACK_FIND(found, EVP_PKEY_fromdata) &&
         CARPACK_FIND(found, EVP_PKEY_fromdata_init) && CARPACK_FIND(found, EVP_PKEY_verify) &&
         CARPACK_FIND(found, EVP_PKEY_verify_init) && CARPACK_FIND(found, OSSL_PARAM_construct_end) &&
         CARPACK_FIND(found, OSSL_PARAM_construct_octet_string) &&
         CARPACK_FIND(found, OSSL_PARAM_construct_utf8_string);
}

/* A public key of an elliptic curve from its point, or NULL if the point does not lie on it; free with EVP_PKEY_free. Parameters point
   into one another, and EVP_PKEY_PUBLIC_KEY is a macro of a kind that Swift does not import. */
static inline EVP_PKEY *carpack_ec_public_key(const carpack_signature_functions *library, const char *group,
                                              const unsigned char *point, size_t length) {
  EVP_PKEY *key = NULL;
  OSSL_PARAM parameters[] = {
    library->OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)group, 0),
    library->OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)point, length),
    library->OSSL_PARAM_construct_end(),
  };
  EVP_PKEY_CTX *context = library->EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
  if (context != NULL && library->EVP_PKEY_fromdata_init(context) == 1)
    (void)library->EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters);
  library->EVP_PKEY_CTX_free(context);
  return key;
}

#include <openssl/bio.h>
#include <openssl/pem.h>

/* Private keys in PEM, and signing with them. */
typedef struct {
  __typeof__(&BIO_free) BIO_free;
  __typeof__(&BIO_new_mem_buf) BIO_new_mem_buf;
  __typeof__(&ERR_clear_error) ERR_clear_error;
  __typeof__(&EVP_PKEY_CTX_free) EVP_PKEY_CTX_free;
  __typeof__(&EVP_PKEY_CTX_new) EVP_PKEY_CTX_new;
  __typeof__(&EVP_PKEY_free) EVP_PKEY_free;
  __typeof__(&EVP_PKEY_get_group_name) EVP_PKEY_get_group_name;
  __typeof__(&EVP_PKEY_get_octet_string_param) EVP_PKEY_get_octet_string_param;
  __typeof__(&EVP_PKEY_sign) EVP_PKEY_sign;
  __typeof__(&EVP_PKEY_sign_init) EVP_PKEY_sign_init;
  __typeof__(&PEM_read_bio_PrivateKey) PEM_read_bio_PrivateKey;
} carpack_signing_functions;

/* Whether all of them were found. */
static inline int carpack_find_signing_functions(void *library, carpack_signing_functions *found) {
  return CARPACK_FIND(found, BIO_free) && CARPACK_FIND(found, BIO_new_mem_buf) &&
         CARPACK_FIND(found, ERR_clear_error) && CARPACK_FIND(found, EVP_PKEY_CTX_free) &&
         CARPACK_FIND(found, EVP_PKEY_CTX_new) && CARPACK_FIND(found, EVP_PKEY_free) &&
         CARPACK_FIND(found, EVP_PKEY_get_group_name) && CARPACK_FIND(found, EVP_PKEY_get_octet_string_param) &&
         CARPACK_FIND(found, EVP_PKEY_sign) && CARPACK_FIND(found, EVP_PKEY_sign_init) &&
         CARPACK_FIND(found, PEM_read_bio_PrivateKey);
}

/* A passphrase, and whether it was asked for. */
typedef struct {
  const unsigned char *bytes;
  int length; /* negative: there is none */
  int was_asked_for;
} carpack_passphrase;

/* Gives the passphrase; without this function libcrypto would ask for one on the terminal. */
static int carpack_give_passphrase(char *buffer, int size, int is_writing, void *context) {
  carpack_passphrase *passphrase = (carpack_passphrase *)context;
  (void)is_writing;
  passphrase->was_asked_for = 1;
  if (passphrase->length < 0 || passphrase->length > size) return -1;
  for (int index = 0; index < passphrase->length; index++) buffer[index] = (char)passphrase->bytes[index];
  return passphrase->length;
}

/* A private key from PEM, or NULL; free with EVP_PKEY_free. */
static inline EVP_PKEY *carpack_private_key(const carpack_signing_functions *library, const void *pem, int length,
                                            carpack_passphrase *passphrase) {
  BIO *input = library->BIO_new_mem_buf(pem, length);
  if (input == NULL) return NULL;
  EVP_PKEY *key = library->PEM_read_bio_PrivateKey(input, NULL, carpack_give_passphrase, passphrase);
  (void)library->BIO_free(input);
  return key;
}

/* Arithmetic on curves, with which the tests sign; they link the library. */
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/obj_mac.h>
