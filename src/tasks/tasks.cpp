#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/files/hf/prompt_config.h"
#include "src/tasks/classification.h"
#include "src/tasks/language_model.h"
#include "src/tasks/preference.h"
#include "src/tasks/prompt/prompt_classification.h"
#include "src/tasks/question_answering.h"
#include "src/tasks/task.h"
#include "src/tasks/token_classification.h"

namespace ferry {
namespace {

/** Every task. The first is that of a model whose architecture tells nothing. */
const TaskKind kKinds[] = {
    classification_kind(),        masked_lm_kind(),  causal_lm_kind(), token_classification_kind(),
    question_answering_kind(),    preference_kind(), kto_kind(),       reward_kind(),
    prompt_classification_kind(),
};

}  // namespace

std::span<const TaskKind> task_kinds() {
  return kKinds;
}

const TaskKind& task_kind(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &TaskKind::name);
  FERRY_CHECK(found != std::end(kKinds), "no task '{}'", name);
  return *found;
}

const TaskKind& kind_of_model(const HfConfig& config) {
  struct Suffix {
    std::string_view text;
    HeadKind head;
  };
  // As transformers names its classes: BertForMaskedLM, GPT2LMHeadModel.
  constexpr Suffix kSuffixes[] = {{"ForMaskedLM", HeadKind::masked_lm},
                                  {"ForCausalLM", HeadKind::causal_lm},
                                  {"LMHeadModel", HeadKind::causal_lm},
                                  {"ForTokenClassification", HeadKind::token_classification},
                                  {"ForQuestionAnswering", HeadKind::question_answering}};
  for (const std::string& architecture : config.architectures)
    for (const Suffix& suffix : kSuffixes)
      if (architecture.ends_with(suffix.text))
        for (const TaskKind& kind : kKinds)
          if (kind.head == suffix.head) {
            const bool is_prompt =
                is_language_model(kind.head) && config.fields().find(kPromptKey).has_value();
            return is_prompt ? task_kind("prompt-classification") : kind;
          }
  return kKinds[0];
}

void drop_classifier_keys(HfConfig& config) {
  if (config.json().contains("problem_type")) config.set("problem_type", nullptr);
  if (config.json().contains(kPairsKey)) config.set(kPairsKey, false);
}

TokenPlaces places_of(const Encoding& encoding, int first_text) {
  TokenPlaces places;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    const int text = encoding.texts[i] < 0 ? -1 : encoding.texts[i] + first_text;
    places.push_back({encoding.ids[i], text, {encoding.offsets[i].begin, encoding.offsets[i].end}});
  }
  return places;
}

std::vector<TokenPlaces> in_windows(const TokenPlaces& whole, int64_t max_length) {
  const auto n = static_cast<std::ptrdiff_t>(max_length);
  std::vector<TokenPlaces> windows;
  for (auto at = whole.begin(); at != whole.end();) {
    const auto end = at + std::min(n, whole.end() - at);
    windows.emplace_back(at, end);
    at = end;
  }
  return windows;
}

std::vector<TokenPlaces> Task::places(const Example& example,
                                      const Tokenizer& tokenizer,
                                      int64_t max_length) const {
  Encoding encoding;
  if (example.text_pair)
    tokenizer.encode_pair(example.text, *example.text_pair, max_length, encoding, Offsets::keep);
  else
    tokenizer.encode(example.text, max_length, encoding, Offsets::keep);
  return {places_of(encoding)};
}

TokenizedExample encode_texts(const Example& example,
                              const Tokenizer& tokenizer,
                              int64_t max_length) {
  thread_local Encoding encoding;
  if (example.text_pair)
    tokenizer.encode_pair(example.text, *example.text_pair, max_length, encoding);
  else
    tokenizer.encode(example.text, max_length, encoding);
  TokenizedExample out{.ids = encoding.ids, .type_ids = encoding.type_ids};
  out.truncated = static_cast<int64_t>(out.ids.size()) == max_length;
  return out;
}

}  // namespace ferry
