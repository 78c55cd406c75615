#pragma once
// Prompts that a language model goes on with, and the rule by which it does: those of `ferry
// generate`, and the samples of a training. `ferry plan` counts their memory, too: no torch.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/blocks/generation_memory.h"
#include "src/config/config.h"
#include "src/files/hf/hf_config.h"
#include "src/inputs/sampling_rule.h"
#include "src/text/tokenizer.h"

namespace ferry {

/** The tokens that end a text: as the file generation_config.json says, which need not be there,
 * else config.json, else the tokenizer. Throws Error(data) for a damaged file. */
std::vector<int32_t> end_ids_of(const std::filesystem::path& generation_config,
                                const HfConfig& model,
                                const Tokenizer& tokenizer);

struct Prompt {
  std::string text;
  std::vector<int32_t> ids;
};

struct GenerationRule {
  int64_t n_new_max = 0;        ///< tokens
  int64_t context = 0;          ///< tokens that the model takes
  int64_t n_sequences_max = 1;  ///< prompts at once
  bool uses_cache = true;
  uint64_t seed = 0;
  SamplingRule sampling;
  std::vector<int32_t> end_ids;    ///< tokens that end a text
  std::vector<std::string> stops;  ///< texts that end one
};

struct TextGeneration {
  GenerationRule rule;
  std::vector<Prompt> prompts;  ///< none: nothing is generated

  int64_t n_prompts() const { return static_cast<int64_t>(prompts.size()); }
  /** Tokens of the longest prompt. */
  int64_t longest_prompt() const;
};

/** The settings' rule of a model, whose generation_config.json need not be there. Throws
 * Error(usage) where settings contradict each other. */
GenerationRule generation_rule(const config::Config& config,
                               const std::filesystem::path& generation_config,
                               const HfConfig& model,
                               const Tokenizer& tokenizer,
                               int64_t context);

/** The most tokens of a text that a model goes on with. */
int64_t context_of(int64_t max_positions, bool has_gpu);

/** Throws Error(data) for a prompt that is empty, not UTF-8 or longer than the context. */
Prompt make_prompt(std::string text, const Tokenizer& tokenizer, int64_t context);

/** A generation's tokens of a text that the model looks at, at most: the last one's are not. */
int64_t looked_at_tokens(const GenerationRule& rule, int64_t longest_prompt);

/** The most that the generation has use for. */
GenerationShape shape_of(const TextGeneration& generation);

/** The file that option sample_prompts names; empty where it is a text, or nothing. Throws
 * Error(data) for the name of a file that is not there. */
std::filesystem::path sample_file(const config::Config& config);

/** The texts of option sample_prompts, none where it is empty. Throws Error(usage) where the
 * settings train no model that goes on with texts, or where a command line says how to go on with
 * none, Error(data) for a file with a fault. */
std::vector<std::string> sample_texts(const config::Config& config);

/** The samples that a training makes at once: few, since their keys and values take memory from
 * it. */
inline constexpr int64_t kSamplesAtOnce = 8;
/** The samples of a training. */
TextGeneration samples_of(const config::Config& config,
                          const std::filesystem::path& generation_config,
                          const HfConfig& model,
                          const Tokenizer& tokenizer,
                          int64_t context);

}  // namespace ferry
