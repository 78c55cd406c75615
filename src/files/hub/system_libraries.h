#pragma once
// libcurl and OpenSSL's libcrypto, loaded when something is fetched: libcurl draws some thirty
// libraries, and most commands need none of them.

#define CURL_DISABLE_DEPRECATION  // Ubuntu 22.04 has no successor of what newer ones deprecate
#include <curl/curl.h>
#include <openssl/evp.h>

namespace ferry::hub {

struct Curl {
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_setopt) easy_setopt;
  decltype(&curl_easy_perform) easy_perform;
  decltype(&curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_reset) easy_reset;
  decltype(&curl_easy_strerror) easy_strerror;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;
  decltype(&curl_url) url;
  decltype(&curl_url_set) url_set;
  decltype(&curl_url_get) url_get;
  decltype(&curl_url_cleanup) url_cleanup;
  decltype(&curl_free) free;
};
/** Throws Error(machine) where the system has none. */
const Curl& curl();

struct Crypto {
  decltype(&EVP_MD_CTX_new) context_new;
  decltype(&EVP_MD_CTX_free) context_free;
  decltype(&EVP_DigestInit_ex) digest_init;
  decltype(&EVP_DigestUpdate) digest_update;
  decltype(&EVP_DigestFinal_ex) digest_final;
  decltype(&EVP_sha1) sha1;
  decltype(&EVP_sha256) sha256;
};
/** Throws Error(machine) where the system has none. */
const Crypto& crypto();

}  // namespace ferry::hub
