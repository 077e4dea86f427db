/* Types and constants only: libcurl is opened when the network is first used (CurlLibrary.swift), for loading it and what it
   brings along costs every start of a program some 8 ms. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
