#pragma once
// Texts with one label each, which a language model tells by a word: a template turns a text into a
// question for it, and the words that may answer stand for the labels (Schick and Schütze 2021).

#include <cstdint>
#include <string>

#include "src/tasks/prompt/verbalizer.h"
#include "src/tasks/task.h"

namespace ferry {

/** The settings of a prompt. */
struct PromptSettings {
  std::string text;  ///< of the template; empty: the model's own
  Verbalizer verbalizer;
  WordTokens tokens = WordTokens::first;
  bool is_soft = false;                  ///< a trained row stands for a label, not its words
  const Tokenizer* tokenizer = nullptr;  ///< null: words and soft tokens have no ids yet
  int32_t n_words = 0;                   ///< rows of the model's table of words
  bool is_decoder = false;
  /** They count beside a model that has a prompt already. */
  bool replaces_model = false;
};

TaskKind prompt_classification_kind();

}  // namespace ferry
