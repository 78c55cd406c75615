#pragma once
// What an answer of the hub that is no success means for the user, and whether asking again may
// help. Private to src/files/hub.

#include <chrono>
#include <optional>
#include <string>

#include "src/files/hub/http.h"
#include "src/files/hub/hub_names.h"
#include "src/files/hub/hub_settings.h"

namespace ferry::hub {

/** What was asked for. */
struct Asked {
  const HubSettings& settings;
  const RepoName& repo;
  std::string file;  ///< empty: the repository itself
};

/** Throws the Error for an answer without success. */
[[noreturn]] void throw_refusal(const HttpAnswer& answer, const Asked& asked);

/** Throws the Error for an answer that no hub gives, such as the page of a proxy. */
[[noreturn]] void throw_no_hub(const Asked& asked, const std::string& what);

/** How long to wait before the same is asked again. */
class Retries {
 public:
  explicit Retries(const HubSettings& settings) : settings_(settings) {}
  /** nullopt: it would not help, or was tried often enough. */
  std::optional<std::chrono::milliseconds> wait_after(const HttpAnswer& answer);
  /** Something came: the count begins anew. */
  void reset() {
    n_ = 0;
    has_come_ = true;
  }

 private:
  const HubSettings& settings_;
  int n_ = 0;
  bool has_come_ = false;
};

}  // namespace ferry::hub
