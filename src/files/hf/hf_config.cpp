#include "src/files/hf/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "src/base/error.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHint = "is it the config.json of a transformer model?";
/** Of a value that the model's family does not take. */
constexpr const char* kHintOfValues =
    "set it to what the model was made with, or fetch config.json again";

/** A model of texts and images has one of texts in it, with a configuration of its own. */
struct TextPart {
  std::string_view model_type, architecture;
};
constexpr TextPart kTextParts[] = {{"gemma3", "Gemma3ForCausalLM"}};
constexpr std::string_view kTextKey = "text_config";

/** Keys that the whole has for its text part, too. */
constexpr std::string_view kSharedKeys[] = {
    "bos_token_id", "eos_token_id",         "pad_token_id",        "dtype",
    "torch_dtype",  "transformers_version", "tie_word_embeddings", "quantization_config"};

/** The configuration of the text part where the model has one, else the whole. */
JsonReader text_part_of(JsonReader whole) {
  if (!whole.is_object()) return whole;
  const std::string type = whole.text("model_type");
  const auto part = std::ranges::find(kTextParts, type, &TextPart::model_type);
  if (part == std::end(kTextParts)) return whole;
  ordered_json text = {{"architectures", {part->architecture}},
                       {"model_type", whole.at(kTextKey).text("model_type")}};
  text.update(whole.at(kTextKey).value());
  for (const std::string_view key : kSharedKeys)
    if (const auto value = whole.find(key); value && !text.contains(key))
      text[std::string(key)] = value->value();
  return JsonReader::of(std::move(text), {whole.file(), "model.config", kHintOfValues});
}

/** Room for the most labels that a model may have, under names of ordinary length. */
constexpr size_t kBytes_max = size_t{32} << 20;
constexpr size_t kLabels_max = size_t{1} << 18;
/** Configurations have about a hundred. The order of the keys is kept, so each is looked for among
 * all others. */
constexpr size_t kConfigKeys_max = 4096;

void expect_few_keys(const JsonReader& object) {
  if (const size_t n = object.value().size(); object.is_object() && n > kConfigKeys_max)
    object.fail(fmt::format("has {} keys, expected at most {}", n, kConfigKeys_max), kHint);
}

/** Refuses a configuration of absurd size before anything of it is copied. `whole` is a copy, so
 * that the keys which are looked at here still count as unread. */
void check_sizes(JsonReader whole) {
  expect_few_keys(whole);
  if (const auto text = whole.find(kTextKey)) expect_few_keys(*text);
  if (const auto labels = whole.find("id2label"); labels && labels->is_object())
    if (const size_t n = labels->value().size(); n > kLabels_max)
      labels->fail(fmt::format("has {} names, expected at most {}", n, kLabels_max), kHint);
}

}  // namespace

HfConfig HfConfig::load(const std::filesystem::path& file) {
  return parse(read_text_file(file, kBytes_max), file.string());
}

HfConfig HfConfig::parse(std::string text, std::string origin) {
  const auto read = [&](const char* hint) {
    JsonReader whole = JsonReader::parse(text, {origin, "model.config", hint});
    whole.text("model_type");
    return whole;
  };
  std::optional<JsonReader> fields;
  try {
    fields = read(kHintOfValues);
  } catch (const Error&) {
    // A file that is no configuration at all has another remedy than a wrong value.
    read(kHint);
    throw;
  }
  check_sizes(*fields);
  return HfConfig(*std::move(fields));
}

namespace {

constexpr const char* kQuantisation = "quantization_config";
constexpr const char* kNestsScales = "bnb_4bit_use_double_quant";

std::optional<JsonReader> quantisation_in(const JsonReader& config) {
  const auto settings = config.is_object() ? config.find(kQuantisation) : std::nullopt;
  return settings && settings->is_object() ? settings : std::nullopt;
}

/** The form that a configuration names; empty: none that is read. */
std::string quantised_in(const JsonReader& config) {
  const auto settings = quantisation_in(config);
  if (!settings) return {};
  const bool has_4_bits = settings->flag("load_in_4bit", false),
             has_8_bits = settings->flag("load_in_8bit", false);
  const std::string method =
      settings->text("quant_method", has_4_bits || has_8_bits ? "bitsandbytes" : "");
  if (method == "gguf" || method == "mxfp4") return method;
  if (method != "bitsandbytes") return {};
  return has_8_bits ? "int8" : settings->text("bnb_4bit_quant_type", "fp4");
}

std::vector<std::string> values_in(const JsonReader& config) {
  const auto settings = quantisation_in(config);
  const auto modules = settings ? settings->find("modules_to_not_convert") : std::nullopt;
  return modules ? modules->texts() : std::vector<std::string>();
}

std::map<std::string, std::string> storages_in(const JsonReader& config) {
  std::map<std::string, std::string> storages;
  const auto settings = quantisation_in(config);
  const auto its = settings ? settings->find("storages") : std::nullopt;
  if (its)
    for (const auto& [name, storage] : its->fields())
      storages.emplace(name, storage.text());
  return storages;
}

JsonReader without_quantisation(JsonReader config) {
  if (quantised_in(config).empty()) return config;
  ordered_json rest = config.value();
  rest.erase(kQuantisation);
  return JsonReader::of(std::move(rest), {config.file(), "model.config", kHintOfValues});
}

}  // namespace

HfConfig::HfConfig(JsonReader fields)
    : HfConfig(text_part_of(std::move(fields)), HfConfig::TextPart()) {}

HfConfig::HfConfig(JsonReader fields, TextPart)
    : quantised(quantised_in(fields)),
      storages(storages_in(fields)),
      modules_with_values(values_in(fields)),
      fields_(without_quantisation(fields)),
      json_(fields_.value()),
      quantisation_(quantised.empty() ? ordered_json() : fields.at(kQuantisation).value()) {
  has_nested_scales = quantised == "nf4" && quantisation_in(fields)->flag(kNestsScales, false);
  model_type = fields_.text("model_type");
  if (const auto names = fields_.find("architectures")) architectures = names->texts();
  problem_type = fields_.text("problem_type", "");
  read_labels();
}

nlohmann::ordered_json HfConfig::with_quantisation() const {
  ordered_json whole = *json_;
  if (!quantised.empty()) whole[kQuantisation] = *quantisation_;
  return whole;
}

void HfConfig::take_quantisation(const HfConfig& of) {
  quantised = of.quantised;
  storages = of.storages;
  modules_with_values = of.modules_with_values;
  has_nested_scales = of.has_nested_scales;
  quantisation_ = of.quantisation_;
}

void HfConfig::read_labels() {
  const auto labels = fields_.find("id2label");
  if (!labels) {
    // transformers leaves out what is its default: two labels, LABEL_0 and LABEL_1.
    const bool classifies = std::ranges::any_of(architectures, [](const std::string& name) {
      return name.ends_with("ForSequenceClassification") ||
             name.ends_with("ForTokenClassification");
    });
    const int64_t n = classifies ? fields_.integer("num_labels", 1, 1'000'000, 2) : 0;
    for (int64_t id = 0; id < n; ++id)
      id2label.push_back(fmt::format("LABEL_{}", id));
    return;
  }
  if (!labels->is_object()) labels->refuse("an object of names by number");
  const auto names = labels->fields();
  id2label.resize(names.size());
  std::vector<bool> seen(names.size());
  for (const auto& [key, name] : names) {
    size_t id = 0;
    auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (code != std::errc{} || end != key.data() + key.size() || id >= seen.size() || seen[id] ||
        !name.is_text())
      labels->refuse(fmt::format("names for the numbers 0 to {}", seen.size() - 1));
    seen[id] = true;
    id2label[id] = name.text();
  }
}

void HfConfig::set_labels(const std::vector<std::string>& names) {
  id2label = names;
  auto by_id = ordered_json::object(), by_name = ordered_json::object();
  // Put in by its key, each name would be looked for among all earlier ones.
  auto& ids = by_id.get_ref<ordered_json::object_t&>();
  auto& of_names = by_name.get_ref<ordered_json::object_t&>();
  std::unordered_map<std::string_view, size_t> places;
  for (size_t id = 0; id < names.size(); ++id) {
    ids.emplace_back(std::to_string(id), names[id]);
    const auto [place, is_new] = places.emplace(names[id], of_names.size());
    if (is_new)
      of_names.emplace_back(names[id], id);
    else
      (of_names.begin() + static_cast<std::ptrdiff_t>(place->second))->second = id;
  }
  (*json_)["id2label"] = std::move(by_id);
  (*json_)["label2id"] = std::move(by_name);
  // transformers derives it from id2label; a stale number from the source model would contradict
  // it.
  json_->erase("num_labels");
}

void HfConfig::set_problem_type(std::string_view type) {
  problem_type = type;
  (*json_)["problem_type"] = type;
}

void HfConfig::set_architecture(std::string_view name) {
  architectures = {std::string(name)};
  (*json_)["architectures"] = architectures;
}

void HfConfig::set_dtype(DType dtype) {
  const char* name = dtype == DType::bf16  ? "bfloat16"
                     : dtype == DType::f16 ? "float16"
                                           : "float32";
  set("torch_dtype", name);
  set("dtype", name);
}

void HfConfig::set(std::string_view key, nlohmann::ordered_json value) {
  (*json_)[std::string(key)] = std::move(value);
}

}  // namespace ferry
