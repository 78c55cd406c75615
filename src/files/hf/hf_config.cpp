#include "src/files/hf/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "src/base/error.h"
#include "src/files/mapped_file.h"

namespace ferry {
namespace {

/** A value as a message shows it: short. */
std::string shown(const nlohmann::ordered_json* value) {
  if (!value) return "missing";
  std::string text = value->dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace

HfConfig HfConfig::load(const std::filesystem::path& file) {
  return parse(read_text_file(file), file.string());
}

HfConfig HfConfig::parse(std::string_view text, std::string origin) {
  HfConfig config;
  config.origin_ = std::move(origin);
  try {
    config.json_ = nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::ordered_json::parse_error& error) {
    throw Error(Fault::data, "model.config",
                fmt::format("'{}' is not valid JSON at byte {}", config.origin_, error.byte),
                "is the download complete?");
  }
  if (!config.json_.is_object())
    throw Error(Fault::data, "model.config",
                fmt::format("'{}' is not a JSON object", config.origin_));

  config.model_type = config.get_string("model_type", std::nullopt);
  if (const auto* names = config.find("architectures")) {
    if (!names->is_array()) config.refuse("architectures", "a list of names");
    for (const auto& name : *names) {
      if (!name.is_string()) config.refuse("architectures", "a list of names");
      config.architectures.push_back(name.get<std::string>());
    }
  }
  config.vocab_size = config.get_int("vocab_size", std::nullopt);
  config.hidden_size = config.get_int("hidden_size", std::nullopt);
  config.n_layers = config.get_int("num_hidden_layers", std::nullopt);
  config.n_heads = config.get_int("num_attention_heads", std::nullopt);
  if (config.hidden_size % config.n_heads != 0)
    config.refuse("hidden_size",
                  fmt::format("a multiple of num_attention_heads = {}", config.n_heads));
  if (config.find("pad_token_id"))
    config.pad_token_id = config.get_int("pad_token_id", std::nullopt, 0, config.vocab_size - 1);
  config.problem_type = config.get_string("problem_type", "");
  config.read_labels();
  return config;
}

void HfConfig::read_labels() {
  const auto* labels = find("id2label");
  if (!labels) {
    // transformers leaves out what is its default: two labels, LABEL_0 and LABEL_1.
    const bool classifies = std::ranges::any_of(architectures, [](const std::string& name) {
      return name.ends_with("ForSequenceClassification") ||
             name.ends_with("ForTokenClassification");
    });
    const int64_t n = classifies ? get_int("num_labels", 2, 1, 1'000'000) : 0;
    for (int64_t id = 0; id < n; ++id)
      id2label.push_back(fmt::format("LABEL_{}", id));
    return;
  }
  if (!labels->is_object()) refuse("id2label", "an object of names by number");
  id2label.resize(labels->size());
  std::vector<bool> seen(labels->size());
  for (const auto& [key, name] : labels->items()) {
    size_t id = 0;
    auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (code != std::errc{} || end != key.data() + key.size() || id >= seen.size() || seen[id] ||
        !name.is_string())
      refuse("id2label", fmt::format("names for the numbers 0 to {}", seen.size() - 1));
    seen[id] = true;
    id2label[id] = name.get<std::string>();
  }
}

const nlohmann::ordered_json* HfConfig::find(std::string_view key) const {
  auto found = json_.find(std::string(key));
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

void HfConfig::refuse(std::string_view key, std::string_view expectation) const {
  throw Error(
      Fault::data, "model.config",
      fmt::format("'{}': {} is {}, expected {}", origin_, key, shown(find(key)), expectation),
      "is it the config.json of a transformer model?");
}

int64_t HfConfig::get_int(std::string_view key,
                          std::optional<int64_t> fallback,
                          int64_t min,
                          int64_t max) const {
  const auto* value = find(key);
  if (!value && fallback) return *fallback;
  const auto expectation = [&] { return fmt::format("a whole number from {} to {}", min, max); };
  if (!value || !value->is_number_integer()) refuse(key, expectation());
  // A number above int64 is stored unsigned; get<int64_t> would wrap it.
  if (value->is_number_unsigned() &&
      value->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    refuse(key, expectation());
  const auto number = value->get<int64_t>();
  if (number < min || number > max) refuse(key, expectation());
  return number;
}

double HfConfig::get_number(std::string_view key,
                            std::optional<double> fallback,
                            double min,
                            double max) const {
  const auto* value = find(key);
  if (!value && fallback) return *fallback;
  if (!value || !value->is_number()) refuse(key, fmt::format("a number from {} to {}", min, max));
  const auto number = value->get<double>();
  if (!(number >= min && number <= max))
    refuse(key, fmt::format("a number from {} to {}", min, max));
  return number;
}

bool HfConfig::get_bool(std::string_view key, bool fallback) const {
  const auto* value = find(key);
  if (!value) return fallback;
  if (!value->is_boolean()) refuse(key, "true or false");
  return value->get<bool>();
}

std::string HfConfig::get_string(std::string_view key, std::optional<std::string> fallback) const {
  const auto* value = find(key);
  if (!value && fallback) return *fallback;
  if (!value || !value->is_string()) refuse(key, "a text");
  return value->get<std::string>();
}

void HfConfig::set_labels(const std::vector<std::string>& names) {
  id2label = names;
  auto by_id = nlohmann::ordered_json::object(), by_name = nlohmann::ordered_json::object();
  for (size_t id = 0; id < names.size(); ++id) {
    by_id[std::to_string(id)] = names[id];
    by_name[names[id]] = id;
  }
  json_["id2label"] = std::move(by_id);
  json_["label2id"] = std::move(by_name);
  // transformers derives it from id2label; a stale number from the source model would contradict
  // it.
  json_.erase("num_labels");
}

void HfConfig::set_problem_type(std::string_view type) {
  problem_type = type;
  json_["problem_type"] = type;
}

void HfConfig::set_architecture(std::string_view name) {
  architectures = {std::string(name)};
  json_["architectures"] = architectures;
}

void HfConfig::set(std::string_view key, nlohmann::ordered_json value) {
  json_[std::string(key)] = std::move(value);
}

}  // namespace ferry
