#pragma once
// A Hugging Face model directory: what must be in it, said in plain words when it is not, and the
// files that an export copies as they are. `ferry train`, `eval`, `predict`, `export` and `plan`
// open their model here.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/files/hf/checkpoint_reader.h"
#include "src/files/hf/hf_config.h"
#include "src/files/hf/peft_config.h"

namespace ferry {

/** How the model generates: its stop tokens, above all. A model from scratch has none. */
inline constexpr const char* kGenerationConfigName = "generation_config.json";
/** In a checkpoint whose weights lie on a drive, in place of model.safetensors. */
inline constexpr const char* kPinRecordName = "state/drive_states.json";

class HfDirectory {
 public:
  /** Checks that the directory, its config.json and its weights are there; reads only config.json.
   *  needs_weights = false: for plans. Error(data) says what is missing. src/inputs/model_files.h
   * opens a directory that holds an adapter.
   */
  static HfDirectory open(const std::filesystem::path& path, bool needs_weights = true);
  /** A run's checkpoint: its weights may lie on a drive. */
  static HfDirectory open_checkpoint(const std::filesystem::path& path);
  /** An adapter and the model that it is for. What the adapter's directory lacks, but for weights,
   * is the model's. */
  static HfDirectory open_adapter(const std::filesystem::path& path,
                                  const std::filesystem::path& base,
                                  bool needs_weights = true);
  /** A model that has no weights yet, with the tokenizer of that directory, which becomes path().
   */
  static HfDirectory from_scratch(HfConfig config, const std::filesystem::path& tokenizer);

  const std::filesystem::path& path() const { return path_; }
  /** The directory of the weights: path(), but of an adapter its model's. */
  const std::filesystem::path& base() const { return base_.empty() ? path_ : base_; }
  /** The place of one of the files beside the weights, which need not be there. A file that an
   * adapter's directory lacks is its model's; the tokenizer's files all come from one directory. */
  std::filesystem::path file(const std::string& name) const;
  /** The directory of the tokenizer. */
  const std::filesystem::path& tokenizer() const { return has_tokenizer_ ? path_ : base(); }
  const std::optional<PeftConfig>& adapter() const { return adapter_; }
  /** False: they are drawn. */
  bool has_weights() const { return has_weights_; }
  const HfConfig& config() const { return config_; }
  /** Opens and checks the weights. */
  CheckpointReader weights() const { return CheckpointReader::open(base()); }
  CheckpointReader adapter_weights() const { return CheckpointReader::open(path_, kAdapterStem); }
  struct CopiedFile {
    std::string name, text;
  };
  /** Files that go with a model through training and export as they are, in a fixed order: the
   * tokenizer's (tokenizer.json, vocab.txt, ...) and generation_config.json. */
  const std::vector<CopiedFile>& copied_files() const { return copied_files_; }

  /** Throws Error(data) where one of them is a link that leads out of the directory, but for
   * the hub's cache: a model of somebody else could have any file of the user copied. For whoever
   * will copy them. */
  void check_copyable() const;
  /** Writes them byte for byte, as they were when this was opened, into an existing directory: the
   * model's own may have been moved or removed since. */
  void copy_files(const std::filesystem::path& to) const;

 private:
  HfDirectory(std::filesystem::path path, HfConfig config)
      : path_(std::move(path)), config_(std::move(config)) {}

  void read_copied_files();

  std::filesystem::path path_, base_;
  HfConfig config_;
  std::optional<PeftConfig> adapter_;
  bool has_weights_ = true, has_tokenizer_ = true;
  std::vector<CopiedFile> copied_files_;
};

/** config.json of an export. */
void write_config(const std::filesystem::path& directory, const HfConfig& config);

}  // namespace ferry
