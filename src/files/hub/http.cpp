#include "src/files/hub/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <new>
#include <optional>

#include "src/base/error.h"
#include "src/base/version.h"
#include "src/files/hub/system_libraries.h"
#include "src/files/plain_file.h"

namespace ferry::hub {
namespace {

constexpr size_t kBody_bytes_max = size_t{256} << 20;  // a list of very many files
constexpr size_t kReason_bytes_max = size_t{1} << 20;  // of an answer that is no success

/** Scheme, host and port of a URL. */
struct Origin {
  std::string scheme, host, port;
  bool operator==(const Origin&) const = default;
};

std::optional<Origin> origin_of(const std::string& url) {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> parsed(
      curl().url(), [](CURLU* handle) { curl().url_cleanup(handle); });
  if (!parsed || curl().url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    return std::nullopt;
  Origin origin;
  const auto read = [&](CURLUPart part, std::string& into) {
    char* text = nullptr;
    if (curl().url_get(parsed.get(), part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK || !text)
      return false;
    into = text;
    curl().free(text);
    std::ranges::transform(into, into.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return true;
  };
  if (!read(CURLUPART_SCHEME, origin.scheme) || !read(CURLUPART_HOST, origin.host) ||
      !read(CURLUPART_PORT, origin.port))
    return std::nullopt;
  return origin;
}

/** The certificates that the system trusts. A library that was built elsewhere looks where they
 * lie there. */
std::string certificates() {
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"})
    if (const char* const file = std::getenv(name); file && *file) return file;
  constexpr std::array kPlaces = {"/etc/ssl/certs/ca-certificates.crt",
                                  "/etc/pki/tls/certs/ca-bundle.crt",
                                  "/var/lib/ca-certificates/ca-bundle.pem", "/etc/ssl/cert.pem"};
  for (const char* place : kPlaces)
    if (path_exists(place)) return place;
  return {};
}

/** libcurl reads this one in lower case alone, where other tools take both. */
std::string http_proxy() {
  for (const char* name : {"http_proxy", "HTTP_PROXY"})
    if (const char* const proxy = std::getenv(name); proxy && *proxy) return proxy;
  return {};
}

/** What the callbacks of a transfer share. */
struct Transfer {
  CURL* easy = nullptr;
  BodyReceiver* receiver = nullptr;
  HttpAnswer answer;
  const IsCancelled* is_cancelled = nullptr;
  bool has_begun = false;
  std::exception_ptr thrown;

  long status() const {
    long code = 0;
    curl().easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    return code;
  }
  void begin() {
    if (!receiver || has_begun) return;
    has_begun = true;
    receiver->begin(static_cast<int>(status()), answer.headers);
  }
  void take(std::string_view bytes) {
    const long code = status();
    const bool is_success = code == 200 || code == 206;
    if (receiver && is_success) {
      begin();
      receiver->take(bytes);
      return;
    }
    const size_t most = is_success ? kBody_bytes_max : kReason_bytes_max;
    if (is_success && answer.body.size() + bytes.size() > most)
      throw Error(Fault::data, "hub.http", "the answer of the hub does not end",
                  "is HF_ENDPOINT a hub?");
    answer.body += bytes.substr(0, most - std::min(most, answer.body.size()));
  }
};

size_t on_body(char* bytes, size_t size, size_t n, void* of) {
  auto& transfer = *static_cast<Transfer*>(of);
  try {
    transfer.take({bytes, size * n});
    return size * n;
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 0;
  }
}

size_t on_header(char* bytes, size_t size, size_t n, void* of) {
  auto& transfer = *static_cast<Transfer*>(of);
  const std::string_view line(bytes, size * n);
  constexpr size_t kMost = 200;
  try {
    if (line.starts_with("HTTP/"))
      transfer.answer.headers.clear();  // of an answer that went before
    const size_t colon = line.find(':');
    if (colon == line.npos || transfer.answer.headers.size() >= kMost) return size * n;
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.front())))
      value.remove_prefix(1);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back())))
      value.remove_suffix(1);
    transfer.answer.headers[name] = value;
    return size * n;
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 0;
  }
}

int on_progress(void* of, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(of);
  try {
    return *transfer.is_cancelled && (*transfer.is_cancelled)() ? 1 : 0;
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 1;
  }
}

class HeaderList {
 public:
  ~HeaderList() { curl().slist_free_all(list_); }
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  void add(const std::string& line) {
    curl_slist* const longer = curl().slist_append(list_, line.c_str());
    if (!longer) throw std::bad_alloc();
    list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

std::string HttpAnswer::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string HttpAnswer::hub_header(std::string_view name) const {
  const auto found = hub_headers.find(name);
  return found == hub_headers.end() ? "" : found->second;
}

struct HttpSession::Handle {
  CURL* easy = curl().easy_init();
  ~Handle() { curl().easy_cleanup(easy); }
};

HttpSession::HttpSession(const HubSettings& settings, IsCancelled is_cancelled)
    : settings_(settings), is_cancelled_(std::move(is_cancelled)), handle_(new Handle) {
  if (!handle_->easy) throw std::bad_alloc();
}

HttpSession::~HttpSession() = default;

void HttpSession::check_cancelled() const {
  if (is_cancelled_ && is_cancelled_()) throw Cancelled();
}

bool HttpSession::may_have_token(const std::string& url) const {
  const auto asked = origin_of(url), own = origin_of(settings_.endpoint);
  if (!asked || !own) return false;
  if (*asked == *own) return true;
  constexpr std::array<std::string_view, 3> kHubs = {"huggingface.co", "hub-ci.huggingface.co",
                                                     "hf.co"};
  return asked->scheme == "https" && asked->port == "443" &&
         std::ranges::find(kHubs, asked->host) != kHubs.end();
}

HttpAnswer HttpSession::get(const HttpRequest& request) {
  constexpr int kRedirects_max = 5;
  std::string url = request.url;
  Headers first;
  for (int n_redirects = 0;; ++n_redirects) {
    HttpAnswer answer = get_once(request, url);
    // A repository that was renamed sends on within the hub: what counts is what the last of it
    // says.
    if (n_redirects == 0 || answer.has_sent_token || !answer.header("x-repo-commit").empty())
      first = answer.headers;
    answer.hub_headers = first;
    if (!is_redirect(answer.status)) return answer;
    if (n_redirects == kRedirects_max || answer.url == url || answer.url.empty()) {
      answer.status = 0;
      answer.fault = "the server sends on without end";
      answer.is_hopeless = true;
      return answer;
    }
    url = answer.url;
  }
}

HttpAnswer HttpSession::get_once(const HttpRequest& request, const std::string& url) {
  check_cancelled();
  CURL* const easy = handle_->easy;
  curl().easy_reset(easy);  // keeps its connections
  Transfer transfer;
  transfer.easy = easy;
  transfer.receiver = request.body;
  transfer.is_cancelled = &is_cancelled_;
  HeaderList headers;
  headers.add(fmt::format("User-Agent: ferry/{}", ferry_version()));
  if (!request.may_be_packed) headers.add("Accept-Encoding: identity");
  if (!settings_.token.empty() && may_have_token(url)) {
    headers.add(fmt::format("Authorization: Bearer {}", settings_.token));
    transfer.answer.has_sent_token = true;
  }
  const auto set = [&](CURLoption option, auto value) {
    const CURLcode code = curl().easy_setopt(easy, option, value);
    if (code != CURLE_OK)
      throw Error(Fault::machine, "hub.http",
                  fmt::format("libcurl refuses a setting: {}", curl().easy_strerror(code)));
  };
  const long protocols = settings_.endpoint.starts_with("http://")
                             ? CURLPROTO_HTTP | CURLPROTO_HTTPS
                             : CURLPROTO_HTTPS;
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS, protocols);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(settings_.connect_timeout_s));
  set(CURLOPT_LOW_SPEED_LIMIT, 1024L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings_.stall_timeout_s));
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  if (request.may_be_packed) set(CURLOPT_ACCEPT_ENCODING, "");
  if (request.first_byte > 0) set(CURLOPT_RANGE, fmt::format("{}-", request.first_byte).c_str());
  if (const std::string file = certificates(); !file.empty()) set(CURLOPT_CAINFO, file.c_str());
  if (const std::string proxy = http_proxy(); !proxy.empty() && url.starts_with("http://"))
    set(CURLOPT_PROXY, proxy.c_str());
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_XFERINFOFUNCTION, &on_progress);
  set(CURLOPT_XFERINFODATA, &transfer);
  set(CURLOPT_NOPROGRESS, 0L);
  std::array<char, CURL_ERROR_SIZE> reason{};
  set(CURLOPT_ERRORBUFFER, reason.data());

  const CURLcode code = curl().easy_perform(easy);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(nullptr));
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (code == CURLE_ABORTED_BY_CALLBACK) throw Cancelled();
  HttpAnswer& answer = transfer.answer;
  answer.url = url;
  answer.status = static_cast<int>(transfer.status());
  if (code != CURLE_OK) {
    answer.status = 0;
    answer.fault = reason[0] ? reason.data() : curl().easy_strerror(code);
    answer.is_unreachable = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT ||
                            code == CURLE_COULDNT_RESOLVE_PROXY;
    answer.is_hopeless = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_URL_MALFORMAT ||
                         code == CURLE_SSL_CACERT_BADFILE || code == CURLE_UNSUPPORTED_PROTOCOL;
    return std::move(answer);
  }
  if (answer.is_success()) transfer.begin();  // of an empty body, too
  if (is_redirect(answer.status)) {
    char* next = nullptr;
    curl().easy_getinfo(easy, CURLINFO_REDIRECT_URL, &next);
    answer.url = next ? next : "";
  }
  return std::move(answer);
}

}  // namespace ferry::hub
