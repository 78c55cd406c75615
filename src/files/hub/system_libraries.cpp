#include "src/files/hub/system_libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <initializer_list>

#include "src/base/error.h"

namespace ferry::hub {
namespace {

class Library {
 public:
  Library(std::initializer_list<const char*> names, const char* package) : package_(package) {
    for (const char* name : names)
      if (!handle_) handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle_) fail();
  }

  template <typename Function>
  void find(Function& function, const char* name) const {
    // NOLINTNEXTLINE: what dlsym gives is a function
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (!function) fail();
  }

 private:
  [[noreturn]] void fail() const {
    const char* const reason = ::dlerror();
    throw Error(Fault::machine, "hub.library", reason ? reason : "a library is missing",
                fmt::format("to fetch from the hub install {}", package_));
  }

  void* handle_ = nullptr;  // until the process ends
  const char* package_;
};

Curl load_curl() {
  const Library library({"libcurl.so.4", "libcurl-gnutls.so.4"}, "libcurl4");
  decltype(&curl_global_init) global_init = nullptr;
  library.find(global_init, "curl_global_init");
  Curl curl{};
  library.find(curl.easy_init, "curl_easy_init");
  library.find(curl.easy_setopt, "curl_easy_setopt");
  library.find(curl.easy_perform, "curl_easy_perform");
  library.find(curl.easy_getinfo, "curl_easy_getinfo");
  library.find(curl.easy_cleanup, "curl_easy_cleanup");
  library.find(curl.easy_reset, "curl_easy_reset");
  library.find(curl.easy_strerror, "curl_easy_strerror");
  library.find(curl.slist_append, "curl_slist_append");
  library.find(curl.slist_free_all, "curl_slist_free_all");
  library.find(curl.url, "curl_url");
  library.find(curl.url_set, "curl_url_set");
  library.find(curl.url_get, "curl_url_get");
  library.find(curl.url_cleanup, "curl_url_cleanup");
  library.find(curl.free, "curl_free");
  global_init(CURL_GLOBAL_DEFAULT);
  return curl;
}

Crypto load_crypto() {
  const Library library({"libcrypto.so.3"}, "libssl3");
  Crypto crypto{};
  library.find(crypto.context_new, "EVP_MD_CTX_new");
  library.find(crypto.context_free, "EVP_MD_CTX_free");
  library.find(crypto.digest_init, "EVP_DigestInit_ex");
  library.find(crypto.digest_update, "EVP_DigestUpdate");
  library.find(crypto.digest_final, "EVP_DigestFinal_ex");
  library.find(crypto.sha1, "EVP_sha1");
  library.find(crypto.sha256, "EVP_sha256");
  return crypto;
}

}  // namespace

const Curl& curl() {
  static const Curl loaded = load_curl();
  return loaded;
}

const Crypto& crypto() {
  static const Crypto loaded = load_crypto();
  return loaded;
}

}  // namespace ferry::hub
