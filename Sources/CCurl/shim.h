/* Types and constants, and no function of libcurl: it is opened when the network is first used (CurlLibrary.swift), for loading
   it and what it brings along costs every start of a program some 8 ms. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

/* What is variadic in C cannot be called from Swift. Each wrapper takes the function, as dlsym gave it, and calls it as what it
   is: variadic, for on some systems (macOS on arm64) such functions get their arguments by another way. */

typedef CURLcode (*carpack_easy_function)(CURL *, CURLoption, ...);
typedef CURLcode (*carpack_info_function)(CURL *, CURLINFO, ...);
typedef CURLMcode (*carpack_multi_function)(CURLM *, CURLMoption, ...);

static inline CURLcode carpack_easy_setopt_long(
    void *function, CURL *handle, CURLoption option, long value) {
  return ((carpack_easy_function)function)(handle, option, value);
}

static inline CURLcode carpack_easy_setopt_offset(
    void *function, CURL *handle, CURLoption option, curl_off_t value) {
  return ((carpack_easy_function)function)(handle, option, value);
}

/* Strings, lists, contexts. */
static inline CURLcode carpack_easy_setopt_pointer(
    void *function, CURL *handle, CURLoption option, const void *value) {
  return ((carpack_easy_function)function)(handle, option, value);
}

/* CURLOPT_WRITEFUNCTION, and CURLOPT_HEADERFUNCTION, whose prototype is the same. */
static inline CURLcode carpack_easy_setopt_write(
    void *function, CURL *handle, CURLoption option, curl_write_callback value) {
  return ((carpack_easy_function)function)(handle, option, value);
}

static inline CURLcode carpack_easy_setopt_read(
    void *function, CURL *handle, curl_read_callback value) {
  return ((carpack_easy_function)function)(handle, CURLOPT_READFUNCTION, value);
}

static inline CURLcode carpack_easy_setopt_seek(
    void *function, CURL *handle, curl_seek_callback value) {
  return ((carpack_easy_function)function)(handle, CURLOPT_SEEKFUNCTION, value);
}

static inline CURLcode carpack_easy_setopt_opensocket(
    void *function, CURL *handle, curl_opensocket_callback value) {
  return ((carpack_easy_function)function)(handle, CURLOPT_OPENSOCKETFUNCTION, value);
}

static inline CURLcode carpack_easy_setopt_prereq(
    void *function, CURL *handle, curl_prereq_callback value) {
  return ((carpack_easy_function)function)(handle, CURLOPT_PREREQFUNCTION, value);
}

static inline CURLcode carpack_easy_getinfo_pointer(
    void *function, CURL *handle, CURLINFO info, void **value) {
  return ((carpack_info_function)function)(handle, info, value);
}

static inline CURLcode carpack_easy_getinfo_socket(
    void *function, CURL *handle, curl_socket_t *value) {
  return ((carpack_info_function)function)(handle, CURLINFO_ACTIVESOCKET, value);
}

static inline CURLcode carpack_easy_getinfo_offset(
    void *function, CURL *handle, CURLINFO info, curl_off_t *value) {
  return ((carpack_info_function)function)(handle, info, value);
}

static inline CURLMcode carpack_multi_setopt_long(
    void *function, CURLM *handle, CURLMoption option, long value) {
  return ((carpack_multi_function)function)(handle, option, value);
}

/* Unions do not show in Swift. */
static inline CURLcode carpack_message_result(const CURLMsg *message) {
  return message->data.result;
}

/* The address is as long as its family makes it, whatever its type says. */
static inline const void *carpack_socket_address(const struct curl_sockaddr *address) {
  return &address->addr;
}
