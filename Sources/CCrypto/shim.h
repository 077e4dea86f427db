/* libcrypto, opened when it is first needed: it takes a quarter of the start of a process, and
   where the processor has instructions for SHA-256 it is needed for signatures only. Each structure
   below has some of its functions, with the types that OpenSSL declares them with. */

/* The low-level SHA-256 functions are declared deprecated since OpenSSL 3.0 and are still what
   hashes a 250-byte block fastest: no provider to load at start-up, no indirection for each
   message. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/opensslv.h>
#include <openssl/sha.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <dlfcn.h>

/* The library that these headers belong to; NULL if there is none, and dlerror() says why. It stays
   open until the process ends. */
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

/* SHA-1, by which a WebSocket is opened. */
typedef struct {
  __typeof__(&SHA1) SHA1;
} carpack_sha1_functions;

/* Whether it was found. */
static inline int carpack_find_sha1_functions(void *library, carpack_sha1_functions *found) {
  return CARPACK_FIND(found, SHA1);
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

/* A public key of an elliptic curve from its point, or NULL if the point does not lie on it; free
   with EVP_PKEY_free. Parameters point into one another, and EVP_PKEY_PUBLIC_KEY is a macro of a
   kind that Swift does not import. */
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

#include <openssl/bn.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>

/* Making private keys, and writing them. */
typedef struct {
  __typeof__(&BIO_free) BIO_free;
  __typeof__(&BIO_new) BIO_new;
  __typeof__(&BIO_read) BIO_read;
  __typeof__(&BIO_s_mem) BIO_s_mem;
  __typeof__(&BN_bn2binpad) BN_bn2binpad;
  __typeof__(&BN_clear_free) BN_clear_free;
  __typeof__(&ERR_clear_error) ERR_clear_error;
  __typeof__(&EVP_PKEY2PKCS8) EVP_PKEY2PKCS8;
  __typeof__(&EVP_PKEY_CTX_free) EVP_PKEY_CTX_free;
  __typeof__(&EVP_PKEY_CTX_new_from_name) EVP_PKEY_CTX_new_from_name;
  __typeof__(&EVP_PKEY_CTX_set_params) EVP_PKEY_CTX_set_params;
  __typeof__(&EVP_PKEY_generate) EVP_PKEY_generate;
  __typeof__(&EVP_PKEY_get_bn_param) EVP_PKEY_get_bn_param;
  __typeof__(&EVP_PKEY_keygen_init) EVP_PKEY_keygen_init;
  __typeof__(&EVP_aes_256_cbc) EVP_aes_256_cbc;
  __typeof__(&OSSL_PARAM_construct_end) OSSL_PARAM_construct_end;
  __typeof__(&OSSL_PARAM_construct_utf8_string) OSSL_PARAM_construct_utf8_string;
  __typeof__(&PEM_write_bio_PKCS8) PEM_write_bio_PKCS8;
  __typeof__(&PEM_write_bio_PKCS8_PRIV_KEY_INFO) PEM_write_bio_PKCS8_PRIV_KEY_INFO;
  __typeof__(&PKCS5_pbe2_set_scrypt) PKCS5_pbe2_set_scrypt;
  __typeof__(&PKCS8_PRIV_KEY_INFO_free) PKCS8_PRIV_KEY_INFO_free;
  __typeof__(&PKCS8_set0_pbe) PKCS8_set0_pbe;
  __typeof__(&X509_ALGOR_free) X509_ALGOR_free;
  __typeof__(&X509_SIG_free) X509_SIG_free;
} carpack_key_making_functions;

/* Whether all of them were found. */
static inline int carpack_find_key_making_functions(void *library, carpack_key_making_functions *found) {
  return CARPACK_FIND(found, BIO_free) && CARPACK_FIND(found, BIO_new) && CARPACK_FIND(found, BIO_read) &&
         CARPACK_FIND(found, BIO_s_mem) && CARPACK_FIND(found, BN_bn2binpad) && CARPACK_FIND(found, BN_clear_free) &&
         CARPACK_FIND(found, ERR_clear_error) && CARPACK_FIND(found, EVP_PKEY2PKCS8) &&
         CARPACK_FIND(found, EVP_PKEY_CTX_free) && CARPACK_FIND(found, EVP_PKEY_CTX_new_from_name) &&
         CARPACK_FIND(found, EVP_PKEY_CTX_set_params) && CARPACK_FIND(found, EVP_PKEY_generate) &&
         CARPACK_FIND(found, EVP_PKEY_get_bn_param) && CARPACK_FIND(found, EVP_PKEY_keygen_init) &&
         CARPACK_FIND(found, EVP_aes_256_cbc) && CARPACK_FIND(found, OSSL_PARAM_construct_end) &&
         CARPACK_FIND(found, OSSL_PARAM_construct_utf8_string) && CARPACK_FIND(found, PEM_write_bio_PKCS8) &&
         CARPACK_FIND(found, PEM_write_bio_PKCS8_PRIV_KEY_INFO) && CARPACK_FIND(found, PKCS5_pbe2_set_scrypt) &&
         CARPACK_FIND(found, PKCS8_PRIV_KEY_INFO_free) && CARPACK_FIND(found, PKCS8_set0_pbe) &&
         CARPACK_FIND(found, X509_ALGOR_free) && CARPACK_FIND(found, X509_SIG_free);
}

/* A new private key on a curve, or NULL; free with EVP_PKEY_free. */
static inline EVP_PKEY *carpack_generate_key(const carpack_key_making_functions *library, const char *group) {
  EVP_PKEY *key = NULL;
  OSSL_PARAM parameters[] = {
    library->OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, (char *)group, 0),
    library->OSSL_PARAM_construct_end(),
  };
  EVP_PKEY_CTX *context = library->EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
  if (context != NULL && library->EVP_PKEY_keygen_init(context) == 1 &&
      library->EVP_PKEY_CTX_set_params(context, parameters) == 1)
    (void)library->EVP_PKEY_generate(context, &key);
  library->EVP_PKEY_CTX_free(context);
  return key;
}

/* The secret number of a key in 32 bytes; whether that went well. */
static inline int carpack_key_scalar(const carpack_key_making_functions *library, const EVP_PKEY *key,
                                     unsigned char *scalar) {
  BIGNUM *number = NULL;
  if (library->EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &number) != 1) return 0;
  int length = library->BN_bn2binpad(number, scalar, 32);
  library->BN_clear_free(number);
  return length == 32;
}

/* A key as PKCS #8 in PEM, encrypted with a passphrase (PBES2, scrypt with N 16384, r 8 and p 1,
   AES-256-CBC) unless length is negative; how many bytes it has, or a negative number. */
static inline int carpack_write_key(const carpack_key_making_functions *library, const EVP_PKEY *key,
                                    const char *passphrase, int length, unsigned char *buffer, int capacity) {
  int written = -1;
  BIO *output = library->BIO_new(library->BIO_s_mem());
  PKCS8_PRIV_KEY_INFO *info = library->EVP_PKEY2PKCS8(key);
  if (output != NULL && info != NULL) {
    int is_done = 0;
    if (length < 0) {
      is_done = library->PEM_write_bio_PKCS8_PRIV_KEY_INFO(output, info);
    } else {
      X509_ALGOR *algorithm = library->PKCS5_pbe2_set_scrypt(library->EVP_aes_256_cbc(), NULL, 0, NULL, 16384, 8, 1);
      X509_SIG *encrypted = algorithm == NULL ? NULL : library->PKCS8_set0_pbe(passphrase, length, info, algorithm);
      if (encrypted != NULL) is_done = library->PEM_write_bio_PKCS8(output, encrypted);
      else library->X509_ALGOR_free(algorithm);
      library->X509_SIG_free(encrypted);
    }
    if (is_done == 1) written = library->BIO_read(output, buffer, capacity);
  }
  library->PKCS8_PRIV_KEY_INFO_free(info);
  (void)library->BIO_free(output);
  return written;
}

/* Arithmetic on curves, with which the tests sign; they link the library. */
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/obj_mac.h>

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>

/* What age files are made of: X25519, HKDF and HMAC with SHA-256, scrypt, ChaCha20-Poly1305, random
   bytes. */
typedef struct {
  __typeof__(&ERR_clear_error) ERR_clear_error;
  __typeof__(&EVP_CIPHER_CTX_ctrl) EVP_CIPHER_CTX_ctrl;
  __typeof__(&EVP_CIPHER_CTX_free) EVP_CIPHER_CTX_free;
  __typeof__(&EVP_CIPHER_CTX_new) EVP_CIPHER_CTX_new;
  __typeof__(&EVP_CIPHER_fetch) EVP_CIPHER_fetch;
  __typeof__(&EVP_CipherFinal_ex) EVP_CipherFinal_ex;
  __typeof__(&EVP_CipherInit_ex) EVP_CipherInit_ex;
  __typeof__(&EVP_CipherUpdate) EVP_CipherUpdate;
  __typeof__(&EVP_KDF_CTX_free) EVP_KDF_CTX_free;
  __typeof__(&EVP_KDF_CTX_new) EVP_KDF_CTX_new;
  __typeof__(&EVP_KDF_derive) EVP_KDF_derive;
  __typeof__(&EVP_KDF_fetch) EVP_KDF_fetch;
  __typeof__(&EVP_PBE_scrypt) EVP_PBE_scrypt;
  __typeof__(&EVP_PKEY_CTX_free) EVP_PKEY_CTX_free;
  __typeof__(&EVP_PKEY_CTX_new_from_name) EVP_PKEY_CTX_new_from_name;
  __typeof__(&EVP_PKEY_CTX_new_from_pkey) EVP_PKEY_CTX_new_from_pkey;
  __typeof__(&EVP_PKEY_derive) EVP_PKEY_derive;
  __typeof__(&EVP_PKEY_derive_init) EVP_PKEY_derive_init;
  __typeof__(&EVP_PKEY_derive_set_peer) EVP_PKEY_derive_set_peer;
  __typeof__(&EVP_PKEY_free) EVP_PKEY_free;
  __typeof__(&EVP_PKEY_fromdata) EVP_PKEY_fromdata;
  __typeof__(&EVP_PKEY_fromdata_init) EVP_PKEY_fromdata_init;
  __typeof__(&EVP_PKEY_get_raw_public_key) EVP_PKEY_get_raw_public_key;
  __typeof__(&EVP_PKEY_new_raw_private_key_ex) EVP_PKEY_new_raw_private_key_ex;
  __typeof__(&EVP_PKEY_new_raw_public_key_ex) EVP_PKEY_new_raw_public_key_ex;
  __typeof__(&EVP_sha256) EVP_sha256;
  __typeof__(&HMAC) HMAC;
  __typeof__(&OSSL_PARAM_construct_end) OSSL_PARAM_construct_end;
  __typeof__(&OSSL_PARAM_construct_octet_string) OSSL_PARAM_construct_octet_string;
  __typeof__(&OSSL_PARAM_construct_utf8_string) OSSL_PARAM_construct_utf8_string;
  __typeof__(&RAND_priv_bytes) RAND_priv_bytes;
} carpack_age_functions;

/* Whether all of them were found. */
static inline int carpack_find_age_functions(void *library, carpack_age_functions *found) {
  return CARPACK_FIND(found, ERR_clear_error) && CARPACK_FIND(found, EVP_CIPHER_CTX_ctrl) &&
         CARPACK_FIND(found, EVP_CIPHER_CTX_free) && CARPACK_FIND(found, EVP_CIPHER_CTX_new) &&
         CARPACK_FIND(found, EVP_CIPHER_fetch) && CARPACK_FIND(found, EVP_CipherFinal_ex) &&
         CARPACK_FIND(found, EVP_CipherInit_ex) && CARPACK_FIND(found, EVP_CipherUpdate) &&
         CARPACK_FIND(found, EVP_KDF_CTX_free) && CARPACK_FIND(found, EVP_KDF_CTX_new) &&
         CARPACK_FIND(found, EVP_KDF_derive) && CARPACK_FIND(found, EVP_KDF_fetch) &&
         CARPACK_FIND(found, EVP_PBE_scrypt) && CARPACK_FIND(found, EVP_PKEY_CTX_free) &&
         CARPACK_FIND(found, EVP_PKEY_CTX_new_from_name) && CARPACK_FIND(found, EVP_PKEY_CTX_new_from_pkey) &&
         CARPACK_FIND(found, EVP_PKEY_derive) && CARPACK_FIND(found, EVP_PKEY_derive_init) &&
         CARPACK_FIND(found, EVP_PKEY_derive_set_peer) && CARPACK_FIND(found, EVP_PKEY_free) &&
         CARPACK_FIND(found, EVP_PKEY_fromdata) && CARPACK_FIND(found, EVP_PKEY_fromdata_init) &&
         CARPACK_FIND(found, EVP_PKEY_get_raw_public_key) && CARPACK_FIND(found, EVP_PKEY_new_raw_private_key_ex) &&
         CARPACK_FIND(found, EVP_PKEY_new_raw_public_key_ex) && CARPACK_FIND(found, EVP_sha256) &&
         CARPACK_FIND(found, HMAC) && CARPACK_FIND(found, OSSL_PARAM_construct_end) &&
         CARPACK_FIND(found, OSSL_PARAM_construct_octet_string) &&
         CARPACK_FIND(found, OSSL_PARAM_construct_utf8_string) && CARPACK_FIND(found, RAND_priv_bytes);
}

/* The 32-byte point of an X25519 scalar of 32 bytes; whether that went well. */
static inline int carpack_x25519_public(const carpack_age_functions *library, const unsigned char *scalar,
                                        unsigned char *point) {
  size_t length = 32;
  EVP_PKEY *key = library->EVP_PKEY_new_raw_private_key_ex(NULL, "X25519", NULL, scalar, 32);
  int is_done = key != NULL && library->EVP_PKEY_get_raw_public_key(key, point, &length) == 1 && length == 32;
  library->EVP_PKEY_free(key);
  return is_done;
}

/* What X25519 makes of a scalar, whose own point is given so that it is not computed again, and the
   point of another: 1, and 32 bytes in `shared`; 0 if the result is the all-zero value that RFC
   7748, section 6.1, has refused; -1 if libcrypto fails. */
static inline int carpack_x25519(const carpack_age_functions *library, const unsigned char *scalar,
                                 const unsigned char *point, const unsigned char *peer, unsigned char *shared) {
  int result = -1;
  size_t length = 32;
  EVP_PKEY *key = NULL;
  OSSL_PARAM parameters[] = {
    library->OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, (void *)scalar, 32),
    library->OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)point, 32),
    library->OSSL_PARAM_construct_end(),
  };
  EVP_PKEY_CTX *import = library->EVP_PKEY_CTX_new_from_name(NULL, "X25519", NULL);
  if (import != NULL && library->EVP_PKEY_fromdata_init(import) == 1)
    (void)library->EVP_PKEY_fromdata(import, &key, EVP_PKEY_KEYPAIR, parameters);
  library->EVP_PKEY_CTX_free(import);
  EVP_PKEY *other = library->EVP_PKEY_new_raw_public_key_ex(NULL, "X25519", NULL, peer, 32);
  EVP_PKEY_CTX *context = key == NULL ? NULL : library->EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
  if (other != NULL && context != NULL && library->EVP_PKEY_derive_init(context) == 1 &&
      library->EVP_PKEY_derive_set_peer(context, other) == 1)
    result = library->EVP_PKEY_derive(context, shared, &length) == 1 && length == 32 ? 1 : 0;
  library->EVP_PKEY_CTX_free(context);
  library->EVP_PKEY_free(other);
  library->EVP_PKEY_free(key);
  return result;
}

/* 32 bytes of HKDF with SHA-256 (RFC 5869); whether that went well. */
static inline int carpack_hkdf(const carpack_age_functions *library, EVP_KDF *hkdf, const void *key, size_t key_length,
                               const void *salt, size_t salt_length, const void *info, size_t info_length,
                               unsigned char *derived) {
  int count = 0;
  OSSL_PARAM parameters[5];
  parameters[count++] = library->OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA256", 0);
  parameters[count++] = library->OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)key, key_length);
  if (salt_length > 0)
    parameters[count++] = library->OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt, salt_length);
  parameters[count++] = library->OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)info, info_length);
  parameters[count] = library->OSSL_PARAM_construct_end();
  EVP_KDF_CTX *context = library->EVP_KDF_CTX_new(hkdf);
  int is_done = context != NULL && library->EVP_KDF_derive(context, derived, 32, parameters) == 1;
  library->EVP_KDF_CTX_free(context);
  return is_done;
}
