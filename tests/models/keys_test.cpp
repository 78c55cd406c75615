// Each key of a config.json is read where transformers' class of the family reads it, and nowhere
// else. tests/models/keys/make_keys.py tried every key on tiny models of transformers: variants
// that compute the same have one number there, and so they must give one tensor table here. A
// variant that Ferry refuses is never trained as another model.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "models/core/compile.h"
#include "models/core/operation.h"
#include "models/family.h"
#include "models/ops/attention/attention_op.h"
#include "src/base/error.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

/** Tokens of the texts that the script compared: a wider window is none. */
constexpr int64_t kTextLength = 24;

std::string text_of(Op op) {
  if (op.def == &ops::kAttention) {
    int64_t& window = op.with<ops::AttentionAttributes>().scores.window;
    if (window >= kTextLength) window = 0;
  }
  return op.def->attributes ? op.def->attributes(op) : std::string();
}

/** All that a table says of what its model computes, and of how a new one begins. */
std::string description_of(const ModelTable& model) {
  std::string text = fmt::format("{} {} {} {} {}\n", model.hf_architecture, model.width,
                                 model.vocab_size, model.init_std, model.n_token_types);
  for (const BlockTable& block : model.blocks) {
    text += block.name + "\n";
    for (const ParamSpec& param : block.params)
      text += fmt::format(" {} [{}] {} {} {}\n", param.name, fmt::join(param.shape, " "),
                          static_cast<int>(param.init), param.normal.factor, param.normal.zero_row);
    const BlockProgram& program = block.compiled->program;
    for (const Value& value : program.values)
      text +=
          fmt::format(" {} {} {}\n", value.name, static_cast<int>(value.rows.kind), value.columns);
    for (const Op& op : program.ops)
      text += fmt::format(" {} ({}) ({}) ({}) {}\n", op.def->name, fmt::join(op.in, " "),
                          fmt::join(op.out, " "), fmt::join(op.params, " "), text_of(op));
  }
  for (const HfEntry& entry : model.hf_names)
    text += fmt::format("{} [{}] {}\n", entry.hf_name, fmt::join(entry.hf_shape, " "),
                        fmt::join(entry.tied_names, " "));
  return text;
}

/** Empty where the configuration is refused. */
std::string description_of(const ordered_json& config, HeadKind head) {
  try {
    return description_of(make_table(JsonReader::of(config, {"config.json", "model.config", ""}),
                                     {.head = head, .n_labels = 3}));
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data) << error.what();
    return "";
  }
}

HeadKind head_named(const std::string& name) {
  for (const HeadKind head :
       {HeadKind::classification, HeadKind::masked_lm, HeadKind::token_classification,
        HeadKind::question_answering, HeadKind::causal_lm})
    if (name_of(head) == name) return head;
  ADD_FAILURE() << name;
  return HeadKind::causal_lm;
}

ordered_json table_of_keys() {
  std::ifstream file(FERRY_SOURCE_ROOT "/tests/models/keys/keys.json");
  return ordered_json::parse(file)["families"];
}

TEST(Keys, AreTriedOnEveryFamily) {
  const ordered_json families_tried = table_of_keys();
  for (const Family& family : families())
    EXPECT_TRUE(families_tried.contains(std::string(family.model_type))) << family.model_type;
}

TEST(Keys, AreReadWhereTransformersReadsThem) {
  const ordered_json all = table_of_keys();
  for (const auto& [family, tried] : all.items()) {
    for (const ordered_json& of_head : tried["heads"]) {
      const HeadKind head = head_named(of_head["head"]);
      SCOPED_TRACE(fmt::format("{}, {}", family, name_of(head)));
      std::map<int, std::string> models;           // by number, the description of the first
      std::map<std::string, std::string> numbers;  // of each description, the variant that had it
      std::map<std::string, int> number_of;
      models[0] = description_of(tried["config"], head);
      EXPECT_NE(models[0], "");
      number_of[models[0]] = 0;
      numbers[models[0]] = "the base";
      for (const ordered_json& variant : of_head["variants"]) {
        if (variant[2] == "refused") continue;
        // Small epsilons differ by less than the comparison of outputs sees, or just by more.
        const std::string key = variant[0], shown = fmt::format("{} = {}", key, variant[1].dump());
        if (key.find("eps") != key.npos && variant[1] != 1e-3) continue;
        ordered_json config = tried["config"];
        if (variant[1] == "absent")
          config.erase(key);
        else
          config[key] = variant[1];
        const std::string found = description_of(config, head);
        if (found.empty()) continue;
        const int number = variant[2];
        const auto [before, is_new] = models.try_emplace(number, found);
        EXPECT_EQ(before->second == found, true)
            << shown << ": transformers computes the same as with number " << number
            << ", Ferry does not";
        const auto [same, is_first] = number_of.try_emplace(found, number);
        EXPECT_EQ(same->second, number)
            << shown << ": transformers computes another model than with " << numbers[found]
            << ", Ferry the same";
        if (is_first) numbers[found] = shown;
      }
      EXPECT_GE(models.size(), 5u) << "Ferry refuses nearly all that transformers takes";
    }
  }
}

}  // namespace
}  // namespace ferry
