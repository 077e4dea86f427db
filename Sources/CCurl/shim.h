/* Types and constants; libcurl itself is opened when the network is first used (CurlLibrary.swift),
   for loading it and what it brings along costs every start of a program some 8 ms. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>

/* The functions of libcurl that are used, each under its own name and of its own type. */
#define CARPACK_CURL_FUNCTIONS(ONE) \
  ONE(curl_global_init) \
  ONE(curl_free) \
  ONE(curl_slist_append) \
  ONE(curl_slist_free_all) \
  ONE(curl_easy_init) \
  ONE(curl_easy_cleanup) \
  ONE(curl_easy_pause) \
  ONE(curl_easy_recv) \
  ONE(curl_easy_send) \
  ONE(curl_easy_strerror) \
  ONE(curl_easy_setopt) \
  ONE(curl_easy_getinfo) \
  ONE(curl_multi_init) \
  ONE(curl_multi_cleanup) \
  ONE(curl_multi_add_handle) \
  ONE(curl_multi_remove_handle) \
  ONE(curl_multi_perform) \
  ONE(curl_multi_poll) \
  ONE(curl_multi_wakeup) \
  ONE(curl_multi_info_read) \
  ONE(curl_multi_setopt) \
  ONE(curl_url) \
  ONE(curl_url_cleanup) \
  ONE(curl_url_set) \
  ONE(curl_url_get)

struct carpack_curl {
#define ONE(name) __typeof__(name) *name;
  CARPACK_CURL_FUNCTIONS(ONE)
#undef ONE
};

/* Looks the functions up in an opened library; gives the name of one that is missing, or NULL. */
static inline const char *carpack_curl_look_up(struct carpack_curl *curl, void *library) {
#define ONE(function) \
  if (!(curl->function = (__typeof__(function) *)dlsym(library, #function))) return #function;
  CARPACK_CURL_FUNCTIONS(ONE)
#undef ONE
  return NULL;
}

/* What is variadic in C cannot be called from Swift: each type of argument has a wrapper. */

static inline CURLcode carpack_easy_setopt_long(
    struct carpack_curl curl, CURL *handle, CURLoption option, long value) {
  return curl.curl_easy_setopt(handle, option, value);
}

static inline CURLcode carpack_easy_setopt_offset(
    struct carpack_curl curl, CURL *handle, CURLoption option, curl_off_t value) {
  return curl.curl_easy_setopt(handle, option, value);
}

/* Strings, lists, contexts. */
static inline CURLcode carpack_easy_setopt_pointer(
    struct carpack_curl curl, CURL *handle, CURLoption option, const void *value) {
  return curl.curl_easy_setopt(handle, option, value);
}

/* The functions that take an answer and give what is sent along, and what they are called with. */
static inline void carpack_easy_set_transfer(
    struct carpack_curl curl, CURL *handle, curl_write_callback head, curl_write_callback body,
    curl_read_callback read, curl_seek_callback seek, void *context) {
  curl.curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, head);
  curl.curl_easy_setopt(handle, CURLOPT_HEADERDATA, context);
  curl.curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, body);
  curl.curl_easy_setopt(handle, CURLOPT_WRITEDATA, context);
  curl.curl_easy_setopt(handle, CURLOPT_READFUNCTION, read);
  curl.curl_easy_setopt(handle, CURLOPT_READDATA, context);
  curl.curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, seek);
  curl.curl_easy_setopt(handle, CURLOPT_SEEKDATA, context);
}

/* The functions that are asked about addresses, and what they are called with; an error if libcurl
   is too old to ask. */
static inline CURLcode carpack_easy_set_address_check(
    struct carpack_curl curl, CURL *handle, curl_opensocket_callback open, curl_prereq_callback before, void *context) {
  curl.curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, context);
  curl.curl_easy_setopt(handle, CURLOPT_PREREQDATA, context);
  CURLcode code = curl.curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, open);
  return code ? code : curl.curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, before);
}

static inline CURLcode carpack_easy_getinfo_socket(
    struct carpack_curl curl, CURL *handle, curl_socket_t *value) {
  return curl.curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, value);
}

static inline CURLcode carpack_easy_getinfo_offset(
    struct carpack_curl curl, CURL *handle, CURLINFO info, curl_off_t *value) {
  return curl.curl_easy_getinfo(handle, info, value);
}

static inline CURLMcode carpack_multi_setopt_long(
    struct carpack_curl curl, CURLM *handle, CURLMoption option, long value) {
  return curl.curl_multi_setopt(handle, option, value);
}

/* Unions do not show in Swift. */
static inline CURLcode carpack_message_result(const CURLMsg *message) {
  return message->data.result;
}

/* The address is as long as its family makes it, whatever its type says. */
static inline const void *carpack_socket_address(const struct curl_sockaddr *address) {
  return &address->addr;
}
