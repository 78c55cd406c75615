// Options of prompts, which ask a language model with a template, and of tokens that are trained in
// place of words.

#include "src/config/options/option_groups.h"

namespace ferry::config {
namespace {

constexpr std::string_view kPromptGroup = "Prompts";
constexpr VerbMask kAsking = kTraining | kEval | kPredict;

}  // namespace

std::vector<Option> prompt_options() {
  return {
      {.key = "prompt_template",
       .label = "Template",
       .type = Type::text,
       .group = kPromptGroup,
       .effect = Effect::fixes_bits,
       .value = "",
       .verbs = kAsking,
       .help =
           "Turns a text into a question for a language model (task = prompt-classification), as "
           "OpenPrompt writes it: {\"placeholder\": \"text_a\"} It was {\"mask\"}. text_b is the "
           "second text of a pair, {\"soft\": 5} are five trained tokens, and {\"soft\": \"It "
           "was\"} are trained ones that start as these words. A decoder reads what comes before "
           "the mask. A file has a template in each line, and NAME:2 is its second one. --template "
           "is the same."},
      {.key = "verbalizer",
       .label = "Words of labels",
       .type = Type::text,
       .group = kPromptGroup,
       .effect = Effect::fixes_bits,
       .value = "",
       .verbs = kAsking,
       .help =
           "Words that stand for labels where a template asks for one: {\"negative\": [\"bad\", "
           "\"terrible\"], \"positive\": [\"great\"]}, or a list in the order of the labels. A "
           "file has the same (.json), or the words of a label in each line. Empty for the "
           "labels' own names."},
      {.key = "verbalizer_type",
       .label = "Labels of a template",
       .type = Type::choice,
       .group = kPromptGroup,
       .effect = Effect::fixes_bits,
       .value = "manual",
       .choices = {"manual", "soft"},
       .choice_aliases = {{"manual_verbalizer", "manual"},
                          {"soft_verbalizer", "soft"},
                          {"knowledgeable_verbalizer", "manual"},
                          {"automatic_verbalizer", "", "manual and soft are there"},
                          {"proto_verbalizer", "", "manual and soft are there"}},
       .verbs = kAsking,
       .help = "What answers for a label. manual: its words; soft: a trained row, which starts as "
               "the mean of its words' rows. A row may come to mean what no word says, and wants "
               "more texts for that."},
      {.key = "multi_token_handler",
       .label = "Words of several tokens",
       .type = Type::choice,
       .group = kPromptGroup,
       .effect = Effect::fixes_bits,
       .value = "first",
       .choices = {"first", "mean", "max"},
       .verbs = kAsking,
       .help =
           "Logit of a word that has several tokens, all of which are asked for at the mask. It "
           "is that of the first one, their mean, or the largest."},
      {.key = "num_virtual_tokens",
       .label = "Virtual tokens",
       .type = Type::integer,
       .group = kPromptGroup,
       .effect = Effect::fixes_bits,
       .value = "20",
       .unit = "tokens",
       .range = {1, 10000},
       .aliases = {{"soft_token_num"}, {"prompt_length"}},
       .help = "Trained tokens before each text (tuning = soft_prompt). More learn more, and take "
               "their part of max_length."},
      {.key = "prompt_tuning_init",
       .label = "Start of virtual tokens",
       .type = Type::choice,
       .group = kPromptGroup,
       .effect = Effect::fixes_bits,
       .value = "random",
       .choices = {"random", "text", "vocab"},
       .choice_aliases = {{"sample_vocab", "vocab"}},
       .help =
           "Values that virtual tokens start with. random: between -0.5 and 0.5; text: the rows "
           "of prompt_tuning_init_text; vocab: those of the vocabulary's first tokens."},
      {.key = "prompt_tuning_init_text",
       .label = "Text of virtual tokens",
       .type = Type::text,
       .group = kPromptGroup,
       .effect = Effect::fixes_bits,
       .value = "",
       .help = "Text whose tokens the virtual ones start as, over and over where it has fewer."},
  };
}

}  // namespace ferry::config
