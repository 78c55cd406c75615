#pragma once
// One HTTP request after another over libcurl, redirects followed by Ferry's own rules: the token
// goes to the hub alone, never to the servers that it sends on to. Each thread has a session of its
// own.

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "src/files/hub/hub_settings.h"

namespace ferry::hub {

/** Names in lower case; of a name that comes twice the last. */
using Headers = std::map<std::string, std::string, std::less<>>;

/** Takes the body of an answer that succeeds (200 or 206), piece by piece. What it throws ends the
 * transfer and reaches the caller. */
class BodyReceiver {
 public:
  virtual ~BodyReceiver() = default;
  /** Once, before the first byte. */
  virtual void begin(int status, const Headers& headers) = 0;
  virtual void take(std::string_view bytes) = 0;
};

struct HttpRequest {
  std::string url;
  int64_t first_byte = 0;        ///< above 0: only from there on
  bool may_be_packed = true;     ///< the answer may be compressed on its way
  BodyReceiver* body = nullptr;  ///< none: into HttpAnswer::body
};

struct HttpAnswer {
  int status = 0;     ///< 0: none came, or it broke off
  std::string fault;  ///< why
  /** No connection came about: the network is away, or the host's name is wrong. */
  bool is_unreachable = false;
  bool is_hopeless = false;  ///< the next try would fail the same way
  Headers headers;           ///< of the last server
  Headers hub_headers;       ///< of the server that was asked, also where it sent on to another
  std::string body;          ///< its first megabytes, where no receiver took it
  std::string url;           ///< of the last server
  bool has_sent_token = false;

  bool is_success() const { return status == 200 || status == 206; }
  std::string header(std::string_view name) const;
  std::string hub_header(std::string_view name) const;
};

/** The user has had enough. */
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "cancelled"; }
};
using IsCancelled = std::function<bool()>;

class HttpSession {
 public:
  /** `is_cancelled` is asked often, by the thread of the session. */
  HttpSession(const HubSettings& settings, IsCancelled is_cancelled);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  /** Asks, and follows at most five redirects. Throws Cancelled, and what the receiver throws. */
  HttpAnswer get(const HttpRequest& request);
  /** Throws Cancelled. */
  void check_cancelled() const;

 private:
  struct Handle;

  HttpAnswer get_once(const HttpRequest& request, const std::string& url);
  bool may_have_token(const std::string& url) const;

  const HubSettings& settings_;
  IsCancelled is_cancelled_;
  std::unique_ptr<Handle> handle_;
};

}  // namespace ferry::hub
