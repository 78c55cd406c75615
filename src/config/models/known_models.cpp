#include "src/config/models/known_models.h"

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/base/json/json_reader.h"

namespace ferry::config {
namespace {

constexpr char kTable[] =
#include "known_models.inc"  // known_models.json as a string: the build makes it
    ;

struct KnownTable {
  std::vector<KnownModel> models;
  std::vector<OtherFamily> others;
};

KnownTable read_table() {
  const auto json = JsonReader::parse(kTable, {"known_models.json", "config.models", ""});
  KnownTable table;
  std::map<std::string, nlohmann::ordered_json> configs;
  const auto models = json.at("models");
  for (size_t i = 0; i < models.size(); ++i) {
    const auto entry = models.at(i);
    KnownModel model = {.id = entry.text("id"),
                        .name = {},
                        .config = {},
                        .package_dir = entry.text("package_dir", ""),
                        .pip_name = entry.text("pip_name", "")};
    model.name = model.id.substr(model.id.find('/') + 1);
    nlohmann::ordered_json config = nlohmann::ordered_json::object();
    if (const auto like = entry.find("like")) config = configs.at(like->text());
    if (const auto own = entry.find("config")) config.update(own->value());
    model.config = config.dump();
    configs[model.id] = std::move(config);
    table.models.push_back(std::move(model));
  }
  const auto others = json.at("other_families");
  for (size_t i = 0; i < others.size(); ++i)
    table.others.push_back({others.at(i).text("in_name"), others.at(i).text("model_type")});
  return table;
}

const KnownTable& table() {
  static const KnownTable read = read_table();
  return read;
}

}  // namespace

std::span<const KnownModel> known_models() {
  return table().models;
}

std::span<const OtherFamily> other_families() {
  return table().others;
}

}  // namespace ferry::config
