#pragma once
// Losses that compare answers of the same prompt (LossKind::preference): the settings of a run, and
// the numbers that each sequence of a micro-batch has. No torch.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "simd/host_device.h"

namespace ferry {

/** The loss of a pair of answers, by the names that TRL has for them. */
enum class PreferenceKind : uint8_t {
  sigmoid,       ///< DPO (Rafailov et al. 2023)
  hinge,         ///< SLiC-HF (Zhao et al. 2023), of the ratios
  ipo,           ///< Azar et al. 2023, by the mean of each answer's tokens
  robust,        ///< DPO with labels that are wrong at a known rate (Chowdhury et al. 2024)
  sigmoid_norm,  ///< DPO by the mean of each answer's tokens
  nca_pair,      ///< noise contrastive alignment (Chen et al. 2024)
  sppo_hard,     ///< self-play preference optimisation (Wu et al. 2024)
  apo_zero,      ///< anchored preference optimisation (D'Oosterlinck et al. 2024)
  apo_down,      ///< the same, where the model is better than the chosen answers
  orpo,          ///< odds ratio (Hong et al. 2024), without a reference
  simpo,         ///< means with a margin (Meng et al. 2024), without a reference
  cpo,           ///< contrastive preference optimisation (Xu et al. 2024), without a reference
  kto,           ///< of single answers that are good or bad (Ethayarajh et al. 2024)
};

struct PreferenceKindName {
  PreferenceKind kind;
  std::string_view name;
};
/** Those of pairs; kto is a task of its own. */
inline constexpr std::array<PreferenceKindName, 12> kPreferenceKinds = {
    {{PreferenceKind::sigmoid, "sigmoid"},
     {PreferenceKind::hinge, "hinge"},
     {PreferenceKind::ipo, "ipo"},
     {PreferenceKind::robust, "robust"},
     {PreferenceKind::sigmoid_norm, "sigmoid_norm"},
     {PreferenceKind::nca_pair, "nca_pair"},
     {PreferenceKind::sppo_hard, "sppo_hard"},
     {PreferenceKind::apo_zero, "apo_zero"},
     {PreferenceKind::apo_down, "apo_down"},
     {PreferenceKind::orpo, "orpo"},
     {PreferenceKind::simpo, "simpo"},
     {PreferenceKind::cpo, "cpo"}}};

constexpr std::optional<PreferenceKind> parse_preference_kind(std::string_view name) {
  for (const PreferenceKindName& known : kPreferenceKinds)
    if (known.name == name) return known.kind;
  return std::nullopt;
}

/** The loss compares with the log-probabilities that the first weights gave the answers. */
constexpr bool has_reference(PreferenceKind kind) {
  return kind != PreferenceKind::orpo && kind != PreferenceKind::simpo &&
         kind != PreferenceKind::cpo;
}
/** The prompt of a chosen answer is learnt with it. */
constexpr bool learns_prompts(PreferenceKind kind) {
  return kind == PreferenceKind::orpo;
}

struct PreferenceRule {
  PreferenceKind kind = PreferenceKind::sigmoid;
  float beta = 0.1f;
  float margin = 0.5f;          ///< of simpo: gamma
  float label_smoothing = 0;    ///< the share of pairs that are the wrong way round
  float likelihood_weight = 0;  ///< of the mean of -log p over the tokens of chosen answers
  float good_weight = 1, bad_weight = 1;  ///< of answers, with kto
};

/** Sequences 2 p and 2 p + 1 of a micro-batch are the chosen and the rejected answer of a pair;
 * with kto an answer, and the answer to another prompt in its place, which nothing is learnt from.
 */
FERRY_INLINE constexpr bool is_chosen(int64_t sequence) {
  return sequence % 2 == 0;
}

/** The columns of the numbers that a sequence comes with. */
enum class PreferenceInput : uint8_t {
  reference,     ///< the sum of its answer's log-probabilities by the first weights
  first_answer,  ///< the row, from 0, that has the first token of the answer to guess
  is_good,       ///< 1 or 0, with kto
};
inline constexpr int64_t kPreferenceInputs = 3;

/** The columns of the numbers that the forward pass finds for a sequence. */
enum class PreferenceSum : uint8_t {
  log_p,       ///< the sum of its answer's log-probabilities
  n_tokens,    ///< of the answer
  mean_logit,  ///< the sum over the answer's tokens of the mean of all logits
  surprise,    ///< the sum of -log p of all tokens that a chosen answer teaches; of others 0
  gradient,    ///< of the pair's loss, by log_p
};
inline constexpr int64_t kPreferenceSums = 5;

}  // namespace ferry
