#include "tests/models/small_configs.h"

#include <fstream>
#include <map>
#include <string>

namespace ferry::test {

nlohmann::ordered_json small_config(std::string_view name, const SmallSizes& sizes, bool is_whole) {
  static const auto table = nlohmann::ordered_json::parse(
      std::ifstream(FERRY_SOURCE_ROOT "/tests/models/small_configs.json"));
  const nlohmann::ordered_json& row = table.at(std::string(name));
  const std::map<std::string, int64_t> words = {{"kv_heads", sizes.heads},
                                                {"width", sizes.width},
                                                {"half", sizes.width / 2},
                                                {"head", sizes.width / sizes.heads},
                                                {"window", sizes.window}};
  nlohmann::ordered_json config = {{"model_type", row.value("model_type", std::string(name))}};
  const nlohmann::ordered_json names = row.value("names", nlohmann::ordered_json::object());
  for (const auto& [key, size] : {std::pair{"vocab_size", sizes.vocab},
                                  {"hidden_size", sizes.width},
                                  {"num_hidden_layers", sizes.layers},
                                  {"num_attention_heads", sizes.heads},
                                  {"intermediate_size", sizes.inner},
                                  {"max_position_embeddings", sizes.positions}})
    if (const std::string its = names.value(key, std::string(key)); !its.empty())
      config[its] = size;
  for (const char* part : {"needed", "more"})
    if (row.contains(part) && (is_whole || part == std::string_view("needed")))
      for (const auto& [key, value] : row.at(part).items())
        config[key] =
            value.is_string() ? nlohmann::ordered_json(words.at(value.get<std::string>())) : value;
  return config;
}

}  // namespace ferry::test
