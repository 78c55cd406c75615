#pragma once
// Removes what a report must not tell: tokens and passwords, and where on the machine things lie.
// For `ferry runs report`; texts of the data are never given to it.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::runs {

class Redaction {
 public:
  /** Paths under `home` become ~; empty: there is none. `paths` are known to be paths, and are
   * found also where blanks in them hide that; their directories are, too. */
  explicit Redaction(std::string home, const std::vector<std::string>& paths = {});

  /** Values of tokens, keys and passwords, and what looks like one anywhere, become ***; paths keep
   * their last component; long quoted texts, prompts and texts that end an answer go. Line by line;
   * control characters are spelled out. */
  std::string text(std::string_view text) const;
  /** The same for every text in it; the value of a key that names a secret goes whole. */
  void clean(nlohmann::ordered_json& value) const;

 private:
  std::string line(std::string line) const;
  /** For the directories of a path: "...", at home "~/...". */
  std::string dots(const std::string& path) const;
  std::string shortened(const std::string& path) const;

  std::string home_;
  std::vector<std::string> paths_;  ///< the longest first
};

}  // namespace ferry::runs
