#include "src/service/texts/model_files.h"

#include <fmt/format.h>

#include "src/base/error.h"
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

}  // namespace

bool draws_weights(const config::Config& config) {
  return !config.text("config_name").empty();
}

std::string name_of_model(const config::Config& config) {
  if (!draws_weights(config)) return config.text("model_name_or_path");
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

HfDirectory open_model(const config::Config& config) {
  if (!draws_weights(config))
    return HfDirectory::open(config::find_model(config.text("model_name_or_path")));
  ScratchModel model = find_scratch_model(config);
  if (!model.tokenizer)
    throw Error(Fault::data, "model.open",
                fmt::format("of '{}' the shape is known, and no tokenizer is on this machine",
                            config.text("config_name")),
                "--tokenizer takes a directory with tokenizer.json, vocab.txt or the like");
  return HfDirectory::from_scratch(std::move(model.config), *model.tokenizer);
}

void check_vocabulary(const HfDirectory& directory,
                      const Tokenizer& tokenizer,
                      const ModelTable& table) {
  if (tokenizer.vocab_size() <= table.vocab_size) return;
  throw Error(Fault::data, "model.open",
              fmt::format("the tokenizer of '{}' has {} tokens, the model only {}",
                          directory.path().string(), tokenizer.vocab_size(), table.vocab_size),
              directory.has_weights()
                  ? "tokenizer and weights are not of the same model"
                  : fmt::format("set vocab_size in '{}' to {} or more", directory.config().origin(),
                                tokenizer.vocab_size()));
}

}  // namespace ferry
