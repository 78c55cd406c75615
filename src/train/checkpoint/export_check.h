#pragma once
// A language model that was written is asked beside the model that it was made from: both go along
// the same text, token by token, and their log-probabilities are compared.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "src/base/json/json_value.h"

namespace ferry {

/** How alike two models go on with a text. */
struct Likeness {
  int64_t n_tokens = 0;
  int64_t n_same = 0;   ///< tokens that both find likeliest
  double most = 0;      ///< the largest difference of a log-probability of a token above 1e-4
  double mean = 0;      ///< of the differences of the token that the first one finds likeliest
  std::string skipped;  ///< not empty: they were not compared, and why

  /** A line for people. */
  std::string text() const;
  JsonValue json() const;
};

/** Goes along up to n_tokens of text with one model after the other, on the GPU where there is one.
 * Few tokens where a CPU would take minutes, none where there is no room. Nothing of models that go
 * on with no texts. Throws Error(machine) where `written` is another model than `made_from`. */
std::optional<Likeness> compare_models(const std::filesystem::path& made_from,
                                       const std::filesystem::path& written,
                                       int64_t n_tokens = 200);

}  // namespace ferry
