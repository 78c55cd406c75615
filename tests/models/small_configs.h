#pragma once
// A small config.json of each family, made from one table for all tests (small_configs.json). A row
// has the keys that the family spells in its own way (`names`; "": it has none), those that it
// cannot do without (`needed`), and those that turn on the rest of what it computes (`more`). Words
// among the values stand for sizes.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

namespace ferry::test {

struct SmallSizes {
  int64_t vocab = 100, width = 24, layers = 2, heads = 3, inner = 40, positions = 20, window = 7;
};

/** `name`: a model_type, or "opt-350m". With `is_whole` the keys of `more` are in it, too. */
nlohmann::ordered_json small_config(std::string_view name,
                                    const SmallSizes& sizes = {},
                                    bool is_whole = false);

}  // namespace ferry::test
