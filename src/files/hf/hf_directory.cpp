#include "src/files/hf/hf_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "src/base/error.h"
#include "src/files/plain_file.h"
#include "src/files/write/atomic_file.h"

namespace ferry {
namespace {

constexpr std::array kTokenizerFiles = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "vocab.txt",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer.model",
                                        "spiece.model",
                                        "sentencepiece.bpe.model",
                                        "tekken.json",
                                        "tiktoken.model",
                                        "qwen.tiktoken",
                                        "added_tokens.json"};
/** Stand beside a tokenizer, and are none. */
constexpr std::array kChatTemplates = {"chat_template.jinja", "chat_template.json",
                                       "additional_chat_templates/tool_use.jinja"};

}  // namespace

HfDirectory HfDirectory::open(const std::filesystem::path& path, bool needs_weights) {
  if (!path_exists(path))
    throw Error(Fault::data, "model.open",
                fmt::format("model directory '{}' does not exist", path.string()),
                "check the path");
  if (!path_is_directory(path))
    throw Error(Fault::data, "model.open",
                fmt::format("'{}' is a file, expected a model directory", path.string()),
                "give the directory that holds config.json");
  if (path_exists(path / kPeftConfigName))
    throw Error(Fault::data, "model.open",
                fmt::format("'{}' holds an adapter (adapter_config.json)", path.string()),
                "merge it into its model: ferry export --model ADAPTER --output-dir MODEL");
  if (!path_exists(path / "config.json"))
    throw Error(Fault::data, "model.open", fmt::format("'{}' has no config.json", path.string()),
                "give a directory as transformers' save_pretrained writes it");
  HfDirectory directory(path, HfConfig::load(path / "config.json"));
  // The reader says in plain words what is wrong with the weights; a directory that will not do
  // fails before the data is read.
  if (needs_weights && path_exists(path / kPinRecordName))
    throw Error(Fault::data, "model.open",
                fmt::format("the weights of '{}' lie on a drive", path.string()),
                fmt::format("make a model of it: ferry export --model '{}' --output-dir DIR",
                            path.string()));
  if (needs_weights) directory.weights();
  directory.read_copied_files();
  return directory;
}

HfDirectory HfDirectory::open_checkpoint(const std::filesystem::path& path) {
  return open(path, !path_exists(path / kPinRecordName));
}

HfDirectory HfDirectory::open_adapter(const std::filesystem::path& path,
                                      const std::filesystem::path& base,
                                      bool needs_weights) {
  const bool has_config = path_exists(path / "config.json");
  HfDirectory directory(path, HfConfig::load((has_config ? path : base) / "config.json"));
  directory.base_ = base;
  if (has_config) directory.config_.take_quantisation(HfConfig::load(base / "config.json"));
  directory.adapter_ = read_peft_config(path / kPeftConfigName);
  directory.has_tokenizer_ = std::ranges::any_of(
      kTokenizerFiles, [&](const char* name) { return path_exists(path / name); });
  if (needs_weights) {
    open(base);  // says what is missing there
    directory.adapter_weights();
  }
  directory.read_copied_files();
  return directory;
}

HfDirectory HfDirectory::from_scratch(HfConfig config, const std::filesystem::path& tokenizer) {
  HfDirectory directory(tokenizer, std::move(config));
  directory.has_weights_ = false;
  directory.read_copied_files();
  return directory;
}

std::filesystem::path HfDirectory::file(const std::string& name) const {
  if (path_exists(path_ / name)) return path_ / name;
  // A tokenizer without a template is not one with the template of another.
  return (name == kGenerationConfigName ? base() : tokenizer()) / name;
}

void HfDirectory::read_copied_files() {
  const auto read = [&](const std::string& name) {
    // One that cannot be read shows now, not after training.
    if (const auto from = file(name); path_exists(from))
      copied_files_.push_back({name, read_text_file(from)});
  };
  for (const char* name : kTokenizerFiles)
    read(name);
  for (const char* name : kChatTemplates)
    read(name);
  std::vector<std::string> others;  // which have a version or a model in their names
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(tokenizer(), error)) {
    const std::string name = entry.path().filename().string();
    const bool is_known = std::ranges::find(kTokenizerFiles, name) != kTokenizerFiles.end();
    if (!is_known && (name.starts_with("tokenizer.model.v") || name.ends_with(".tiktoken")))
      others.push_back(name);
  }
  std::ranges::sort(others);
  std::ranges::for_each(others, read);
  if (has_weights_) read(kGenerationConfigName);
}

void HfDirectory::check_copyable() const {
  std::error_code code;
  const auto is_in = [](const std::filesystem::path& file, const std::filesystem::path& directory) {
    return std::ranges::mismatch(directory, file).in1 == directory.end();
  };
  for (const CopiedFile& copied : copied_files_) {
    const std::filesystem::path from = file(copied.name);
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(from, code))) continue;
    std::filesystem::path model = from;  // its directory
    for ([[maybe_unused]] const auto& part : std::filesystem::path(copied.name))
      model = model.parent_path();
    const std::filesystem::path target = std::filesystem::weakly_canonical(from, code),
                                whole = std::filesystem::canonical(model, code);
    // The hub's cache has REPO/snapshots/REVISION/FILE lead to REPO/blobs.
    const std::filesystem::path blobs = whole.parent_path().filename() == "snapshots"
                                            ? whole.parent_path().parent_path() / "blobs"
                                            : whole;
    if (is_in(target, whole) || is_in(target, blobs)) continue;
    throw Error(Fault::data, "model.open",
                fmt::format("'{}' is a link that leads out of the model's directory, to '{}', and "
                            "would be copied",
                            from.string(), target.string()),
                "put the file itself there, if it is the tokenizer's");
  }
}

void HfDirectory::copy_files(const std::filesystem::path& to) const {
  for (const CopiedFile& file : copied_files_) {
    const std::filesystem::path target = to / file.name;
    if (target.parent_path() != to) std::filesystem::create_directories(target.parent_path());
    write_text_file(target, file.text);
  }
}

void write_config(const std::filesystem::path& directory, const HfConfig& config) {
  write_json_file(directory / "config.json", config.json());
}

}  // namespace ferry
