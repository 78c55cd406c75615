#include "src/files/hub/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/files/hf/checkpoint_reader.h"
#include "src/files/hf/peft_config.h"
#include "src/files/plain_file.h"

namespace ferry::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSmallFiles = {"generation_config.json",
                                    "tokenizer.json",
                                    "tokenizer_config.json",
                                    "special_tokens_map.json",
                                    "added_tokens.json",
                                    "vocab.txt",
                                    "vocab.json",
                                    "merges.txt",
                                    "spiece.model",
                                    "sentencepiece.bpe.model",
                                    "tokenizer.model",
                                    "tekken.json",
                                    "qwen.tiktoken",
                                    "chat_template.jinja",
                                    "chat_template.json",
                                    kPeftConfigName};
constexpr std::string_view kAdapterWeightsName = "adapter_model.safetensors";

/** Safetensors first: nothing in them can be run. */
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kWeights = {
    {{kWeightsName, kWeightsIndexName}, {kTorchWeightsName, kTorchIndexName}}};

/** The shards that an index names. Throws Error(data). */
std::set<std::string> shards_of(const std::string& index, const std::string& origin) {
  const auto json = JsonReader::parse(index, {origin, "hub.model", "the repository is damaged"});
  std::set<std::string> shards;
  for (const auto& [tensor, file] : json.at("weight_map").fields()) {
    const std::string name = file.text();
    if (!is_safe_path(name)) file.refuse("the name of a file");
    shards.insert(name);
  }
  return shards;
}

Error no_weights(const RepoTree& tree, const RepoName& repo) {
  const auto has = [&](std::string_view ending) {
    return std::ranges::any_of(tree.files,
                               [&](const RemoteFile& file) { return file.path.ends_with(ending); });
  };
  const std::string what =
      fmt::format("'{}' has neither {} nor {}", repo.text(), kWeightsName, kTorchWeightsName);
  if (has(".gguf"))
    return Error(
        Fault::data, "hub.model", what + ", and GGUF files are not fetched by name",
        "fetch one file of it, and name that: --model FILE.gguf; or give the model that it "
        "was made of");
  return Error(Fault::data, "hub.model", what, "give a repository with safetensors");
}

}  // namespace

bool is_weights(std::string_view path) {
  return path.ends_with(".safetensors") || path.ends_with(".bin");
}

bool is_needed(std::string_view path) {
  return path != "README.md" && !path.starts_with("LICENSE");
}

bool is_adapter(const RepoTree& tree) {
  const auto has_weights = [&](const auto& names) {
    return tree.find(names.first) || tree.find(names.second);
  };
  return tree.find(kPeftConfigName) && std::ranges::none_of(kWeights, has_weights);
}

const RemoteFile* weights_index(const RepoTree& tree) {
  for (const auto& [single, index] : kWeights) {
    if (tree.find(single)) return nullptr;
    if (const RemoteFile* const file = tree.find(index)) return file;
  }
  return nullptr;
}

std::vector<RemoteFile> files_of_model(const RepoTree& tree,
                                       const std::optional<std::string>& index,
                                       ModelPart part,
                                       const RepoName& repo) {
  std::vector<RemoteFile> files;
  const auto add = [&](std::string_view path) {
    const RemoteFile* const file = tree.find(path);
    if (file) files.push_back(*file);
    return file != nullptr;
  };
  if (is_adapter(tree)) {
    if (part == ModelPart::config) {
      add(kPeftConfigName);
      return files;
    }
    for (const char* path : kSmallFiles)
      add(path);
    add("config.json");
    if (part == ModelPart::all && !add(kAdapterWeightsName))
      throw Error(Fault::data, "hub.model",
                  fmt::format("'{}' is an adapter without {}", repo.text(), kAdapterWeightsName),
                  "give an adapter as PEFT writes it");
    return files;
  }
  if (!add("config.json"))
    throw Error(
        Fault::data, "hub.model",
        fmt::format("'{}' has no config.json: it is no model that Ferry reads", repo.text()),
        tree.find("model_index.json") ? "it is a pipeline of diffusers; Ferry trains texts"
                                      : "give a repository as transformers writes it");
  if (part == ModelPart::config) return files;
  for (const char* path : kSmallFiles)
    add(path);
  for (const RemoteFile& file : tree.files)
    if (!is_needed(file.path) ||
        (file.path.starts_with("additional_chat_templates/") && file.path.ends_with(".jinja")))
      files.push_back(file);
  if (part == ModelPart::small) return files;
  if (const RemoteFile* const list = weights_index(tree)) {
    files.push_back(*list);
    if (!index) return files;
    for (const std::string& shard : shards_of(*index, list->path))
      if (!add(shard))
        throw Error(
            Fault::data, "hub.model",
            fmt::format("'{}' has no file '{}', which {} names", repo.text(), shard, list->path),
            "the repository is incomplete: tell its owner, or give another revision");
    return files;
  }
  if (!add(kWeightsName) && !add(kTorchWeightsName)) throw no_weights(tree, repo);
  return files;
}

std::vector<std::string> absent_files_of_model(const RepoTree& tree) {
  std::vector<std::string> absent(kSmallFiles.begin(), kSmallFiles.end());
  for (const auto& [single, index] : kWeights)
    for (const std::string_view name : {single, index})
      absent.emplace_back(name);
  std::erase_if(absent, [&](const std::string& path) { return tree.find(path) != nullptr; });
  return absent;
}

bool is_whole_model(const fs::path& directory) {
  if (path_exists(directory / kPeftConfigName) && path_exists(directory / kAdapterWeightsName))
    return true;
  if (!path_exists(directory / "config.json")) return false;
  for (const auto& [single, index] : kWeights) {
    if (path_exists(directory / single)) return true;
    if (!path_exists(directory / index)) continue;
    try {
      return std::ranges::all_of(
          shards_of(read_text_file(directory / index), index.data()),
          [&](const std::string& shard) { return path_exists(directory / shard); });
    } catch (const Error&) {  // opening it says what is wrong
      return true;
    }
  }
  return false;
}

}  // namespace ferry::hub
