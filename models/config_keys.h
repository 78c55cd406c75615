#pragma once
// Keys of a config.json that families read in the same way. Torch-free.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "models/ops/activation_kind.h"
#include "src/base/json/json_reader.h"

namespace ferry {

// Far above any model that is published, and so small that the plan's arithmetic cannot leave
// int64: a block's weights are at most vocabulary x width = 2^40 elements, and its largest saved
// tensor, the attention's probabilities, tokens x positions x heads x 4 bytes =
// 2^31 x 2^18 x 2^10 x 4 = 2^61 bytes (src/plan/search/search.cpp has the limit of tokens, and of
// the sum of all blocks). Positions beyond 2^18 are cut: no text is longer.
inline constexpr int64_t kVocabMax = int64_t{1} << 24, kWidthMax = int64_t{1} << 16,
                         kIntermediateMax = int64_t{1} << 18, kPositionsMax = int64_t{1} << 18,
                         kTokenTypesMax = int64_t{1} << 16, kHeadsMax = 1024;
// A table, a list and a layout are made of every layer: more would take minutes and gigabytes.
inline constexpr int64_t kLayersMax = 1024;
inline constexpr double kDropoutMax = 0.999;

/** The share of a dropout; null counts as 0. */
float read_dropout(const JsonReader& config, std::string_view key, float otherwise);
/** The epsilon of a norm. */
float read_eps(const JsonReader& config, std::string_view key, float otherwise);
/** The spread of new weights. */
float read_init_std(const JsonReader& config,
                    std::string_view key = "initializer_range",
                    float otherwise = 0.02f);

/** The row of words that the family keeps for padding: pad_token_id, which counts from the end
 * where it is negative. -1 for null; `otherwise` where the key is absent. */
int64_t read_padding_row(const JsonReader& config, int64_t vocab_size, int64_t otherwise = -1);

/** The activation function that a configuration names, as transformers spells it. */
Activation read_activation(const JsonReader& config, std::string_view key, Activation otherwise);

/** Refuses another value than the one that Ferry computes; absent counts as that one. */
void expect_text(const JsonReader& config,
                 std::string_view key,
                 std::string_view expected,
                 std::string_view hint = {});
/** Refuses a feature that is switched on: anything but null, false, 0, an empty text, list or
 * object. */
void expect_off(const JsonReader& config, std::string_view key, std::string_view hint = {});
/** The same for a flag that is on by default, which Ferry's families are. */
void expect_on(const JsonReader& config, std::string_view key, std::string_view hint = {});
/** Takes keys that files of a family have and that transformers does not read. */
void pass_over(const JsonReader& config, std::initializer_list<std::string_view> keys);
/** Refuses a width that heads do not divide. */
void expect_divides(const JsonReader& config,
                    std::string_view divisor_key,
                    int64_t divisor,
                    std::string_view key,
                    int64_t value);

/** The keys that no family asked for, and that could change what the model computes: not those that
 * only name, describe or generate, nor those that are off. */
std::vector<std::string> unknown_keys(const JsonReader& config);

}  // namespace ferry
