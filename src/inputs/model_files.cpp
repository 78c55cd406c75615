#include "src/inputs/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/family.h"
#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/config/models/models.h"
#include "src/files/mapped_file.h"

namespace ferry {
namespace {

/** A tokenizer may lie in a directory that holds nothing else. */
std::filesystem::path find_tokenizer(const std::string& name_or_path) {
  const std::filesystem::path given(name_or_path);
  if (path_is_directory(given) && Tokenizer::is_in(given)) return given;
  return config::find_model(name_or_path);
}

/** The configuration with the special tokens of the tokenizer that the model will have. Its own may
 * be those of another one, and transformers' defaults are. */
HfConfig with_ids_of(const Tokenizer& tokenizer, const HfConfig& config) {
  const SpecialIds& ids = tokenizer.special_ids();
  nlohmann::ordered_json json = config.json();
  const bool is_decoder = family_of(config.fields()).is_decoder;
  for (const auto& [key, id] : {std::pair{"bos_token_id", ids.bos}, {"eos_token_id", ids.eos}}) {
    if (id >= 0)
      json[key] = id;
    else if (is_decoder)
      json[key] = nullptr;
  }
  // The row of one that has another use, too, would stay zero. A row that is not there is refused.
  const bool is_for_padding = ids.pad >= 0 && ids.pad != ids.eos && ids.pad != ids.bos;
  const auto row = config.fields().find("pad_token_id");
  const bool is_there = !row || row->integer(INT32_MIN, INT32_MAX) <
                                    config.fields().integer("vocab_size", 0, INT32_MAX, INT32_MAX);
  if (is_for_padding && is_there) json["pad_token_id"] = ids.pad;
  return HfConfig::parse(json.dump(), config.origin());
}

Error is_no_start(const std::filesystem::path& adapter) {
  return Error(
      Fault::data, "config.model",
      fmt::format("'{}' holds an adapter, and a training begins with a model", adapter.string()),
      "go on with the run that made it (--resume), or merge it first: ferry export "
      "--model ADAPTER --output-dir MODEL");
}

}  // namespace

bool draws_weights(const config::Config& config) {
  return !config.text("config_name").empty();
}

std::string name_of_model(const config::Config& config) {
  if (!draws_weights(config)) {
    // The commit of a hub's model is kept apart.
    const std::string& name = config.text("model_name_or_path");
    const size_t at = name.find('@');
    return at != name.npos && hub::is_commit(name.substr(at + 1)) ? name.substr(0, at) : name;
  }
  const std::filesystem::path path = config.text("config_name");
  const bool is_plain = path.filename() == "config.json" && path.has_parent_path();
  return is_plain ? path.parent_path().string() : path.string();
}

ScratchModel find_scratch_model(const config::Config& config) {
  const std::string& name = config.text("config_name");
  const config::FoundConfig found = config::find_config(name);
  ScratchModel model = {.config = found.file.empty() ? HfConfig::parse(found.known, name)
                                                     : HfConfig::load(found.file),
                        .tokenizer = {}};
  if (const std::string& tokenizer = config.text("tokenizer_name"); !tokenizer.empty())
    model.tokenizer = find_tokenizer(tokenizer);
  else if (!found.file.empty())
    model.tokenizer = found.file.has_parent_path() ? found.file.parent_path() : ".";
  return model;
}

HfDirectory open_directory(const std::filesystem::path& path, bool needs_weights) {
  if (!config::is_adapter(path)) return HfDirectory::open(path, needs_weights);
  return HfDirectory::open_adapter(path, config::find_base(path), needs_weights);
}

HfDirectory open_checkpoint_directory(const std::filesystem::path& path, const std::string& base) {
  if (!config::is_adapter(path)) return HfDirectory::open_checkpoint(path);
  if (base.empty()) return open_directory(path);
  const auto model = config::find_model(base);
  if (config::is_adapter(model)) throw is_no_start(model);
  return HfDirectory::open_adapter(path, model);
}

HfDirectory open_model(const config::Config& config) {
  if (!draws_weights(config)) {
    const auto path = config::find_model(config.text("model_name_or_path"));
    if (config::is_adapter(path)) throw is_no_start(path);
    return HfDirectory::open(path);
  }
  ScratchModel model = find_scratch_model(config);
  if (!model.tokenizer)
    throw Error(Fault::data, "model.open",
                fmt::format("of '{}' the shape is known, and no tokenizer is on this machine",
                            config.text("config_name")),
                "--tokenizer takes a directory with tokenizer.json, vocab.txt or the like");
  const Tokenizer tokenizer = Tokenizer::open(*model.tokenizer);
  return HfDirectory::from_scratch(with_ids_of(tokenizer, model.config), *model.tokenizer);
}

void check_vocabulary(const HfDirectory& directory,
                      const Tokenizer& tokenizer,
                      const ModelTable& table) {
  if (tokenizer.vocab_size() <= table.vocab_size) return;
  if (directory.has_weights() && table.head != HeadKind::masked_lm) return;
  throw Error(Fault::data, "model.open",
              fmt::format("the tokenizer of '{}' has {} tokens, the model only {}",
                          directory.path().string(), tokenizer.vocab_size(), table.vocab_size),
              directory.has_weights()
                  ? "tokenizer and weights are not of the same model"
                  : fmt::format("set vocab_size in '{}' to {} or more", directory.config().origin(),
                                tokenizer.vocab_size()));
}

void check_rows(std::span<const int32_t> ids, const Tokenizer& tokenizer, const ModelTable& table) {
  const auto found = std::ranges::find_if(
      ids, [&](int32_t id) { return id < 0 || id >= table.vocab_size + table.n_soft_tokens; });
  if (found == ids.end()) return;
  constexpr size_t kShown_characters = 60;
  std::string text = tokenizer.decode(ids, /*skip_special=*/false);
  if (const auto end = byte_of_character(text, kShown_characters); end && *end < text.size())
    text = text.substr(0, *end) + "...";
  throw Error(Fault::data, "model.open",
              fmt::format("the text '{}' has the token '{}' (id {}), and the model has rows for {} "
                          "tokens",
                          text, tokenizer.id_to_token(*found), *found, table.vocab_size),
              "take the token out of the texts or of the tokenizer's files; with many such tokens "
              "tokenizer and weights are not of the same model");
}

}  // namespace ferry
