#pragma once
// Removes what a report must not tell: tokens and passwords, and where on the machine things lie.
// For `ferry runs report`; texts of the data are never given to it.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ferry::runs {

class Redaction {
 public:
  /** Paths under `home` become ~; empty: there is none. */
  explicit Redaction(std::string home) : home_(std::move(home)) {}

  /** Values of tokens, keys and passwords, and what looks like one anywhere, become ***; absolute
   * paths keep their last component; long quoted texts and prompts go. Line by line. */
  std::string text(std::string_view text) const;
  /** The same for every text in it; the value of a key that names a secret goes whole. */
  void clean(nlohmann::ordered_json& value) const;

 private:
  std::string line(std::string line) const;
  std::string shortened(const std::string& path) const;

  std::string home_;
};

}  // namespace ferry::runs
