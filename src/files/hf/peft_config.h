#pragma once
// adapter_config.json, which PEFT writes beside the tensors of an adapter
// (adapter_model.safetensors) and reads again: peft 0.21's LoraConfig and PromptTuningConfig.
// Torch-free.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry {

inline constexpr const char* kPeftConfigName = "adapter_config.json";
/** The stem of the files that hold an adapter's tensors. */
inline constexpr std::string_view kAdapterStem = "adapter_model";

enum class PeftType : uint8_t {
  lora,
  prompt_tuning,  ///< virtual tokens before each text
  // No types of PEFT:
  bitfit,  ///< biases alone, as modules that are trained whole
  adapter,
  parallel_adapter,
  low_rank_adapter,
  compacter,
};

/** The name of the rows of virtual tokens in an adapter's file. */
inline constexpr std::string_view kPromptEmbeddings = "prompt_embeddings";

/** The settings of PROMPT_TUNING. */
struct PeftPrompt {
  int64_t n_tokens = 0, token_width = 0, n_layers = 0, n_heads = 0;
  std::string init = "RANDOM";  ///< or TEXT, SAMPLE_VOCAB
  std::string init_text, tokenizer;
};
/** "LORA", "PARALLEL_ADAPTER", .... */
std::string_view name_of(PeftType type);
std::optional<PeftType> peft_type_named(std::string_view name);
constexpr bool is_bottleneck(PeftType type) {
  return type >= PeftType::adapter;
}

/** True of a module's whole name, and of its last parts. */
bool is_end_of_name(const std::string& end, const std::string& module);

struct PeftConfig {
  PeftType type = PeftType::lora;
  std::string base_model;  ///< a directory, or a name of the hub
  std::string revision;    ///< of the hub's model; empty: main
  std::string task_type;   ///< "CAUSAL_LM", "SEQ_CLS", ...; empty: none
  int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;
  bool rank_stabilised = false;
  bool dora = false;  ///< rows have lengths of their own
  /** Alphas of modules that have others, by the ends of their names. The first end that fits
   * counts. */
  std::vector<std::pair<std::string, double>> alphas;
  std::vector<std::string> targets;  ///< names of modules, whole or their ends
  std::vector<std::string> modules_to_save;
  PeftPrompt prompt;        ///< of prompt_tuning
  bool transposes = false;  ///< fan_in_fan_out: the model's linear maps are GPT-2's Conv1D
  /** Columns, factor and Compacter's terms of adapters with a bottleneck. */
  int64_t size = 0;
  double scale = 1;
  int64_t division = 4;
  bool keeps_ties = false;  ///< ensure_weight_tying: tensors that the model ties stay one

  /** The base as --model takes it. */
  std::string base() const;
  /** The factor of B A for a module of this rank. */
  double factor(const std::string& module, int64_t rank_of_module) const;
};

/** Error(data): missing, no JSON, no LoRA, or with a setting that changes what an adapter computes
 * and that Ferry does not have, by its name. */
PeftConfig read_peft_config(const std::filesystem::path& file);
nlohmann::ordered_json to_json(const PeftConfig& config);

}  // namespace ferry
