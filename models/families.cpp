#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/bert/bert_table.h"
#include "models/config_keys.h"
#include "models/distilbert/distilbert.h"
#include "models/electra/electra.h"
#include "models/family.h"
#include "models/gemma/gemma.h"
#include "models/gpt2/gpt2.h"
#include "models/gpt_neox/gpt_neox.h"
#include "models/gptj/gptj.h"
#include "models/granite/granite.h"
#include "models/llama/llama.h"
#include "models/mistral/mistral.h"
#include "models/opt/opt.h"
#include "models/phi3/phi3.h"
#include "models/qwen2/qwen2.h"
#include "models/qwen3/qwen3.h"
#include "models/roberta/roberta.h"
#include "models/stablelm/stablelm.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** Every family. */
const Family kFamilies[] = {
    bert_family(),       roberta_family(), xlm_roberta_family(), camembert_family(),
    distilbert_family(), electra_family(), gpt2_family(),        opt_family(),
    gpt_neox_family(),   gptj_family(),    llama_family(),       mistral_family(),
    qwen2_family(),      qwen3_family(),   gemma_family(),       gemma2_family(),
    gemma3_family(),     phi3_family(),    stablelm_family(),    granite_family(),
};

std::string known_types() {
  std::vector<std::string_view> names;
  for (const Family& family : kFamilies)
    names.push_back(family.model_type);
  return fmt::format("{}", fmt::join(names, ", "));
}

void check_head(const Family& family, HeadKind head) {
  if (std::ranges::find(family.heads, head) != family.heads.end()) return;
  std::vector<std::string_view> names;
  for (HeadKind known : family.heads)
    names.push_back(name_of(known));
  throw Error(Fault::usage, "config.task",
              fmt::format("a {} model has no head for {}", family.model_type, name_of(head)),
              fmt::format("it is trained for: {}", fmt::join(names, ", ")));
}

void refuse_quantised(const JsonReader& config) {
  const auto quantised = config.find("quantization_config");
  if (!quantised) return;
  const std::string method = quantised->is_object() ? quantised->text("quant_method", "") : "";
  quantised->fail(fmt::format("says that the weights are quantised{}",
                              method.empty() ? "" : fmt::format(" ({})", method)),
                  "take the model's weights as they were before: Ferry trains no quantised ones");
}

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

const Family& family_of(const JsonReader& config) {
  const std::string type = config.text("model_type");
  for (const Family& family : kFamilies)
    if (family.model_type == type) return family;
  throw Error(Fault::data, "model.open",
              fmt::format("'{}' is of model_type {}, which is not trained by this version",
                          config.file(), type),
              fmt::format("it trains {}", known_types()));
}

bool is_old_buffer(std::string_view model_type, std::string_view name) {
  const auto family = std::ranges::find(kFamilies, model_type, &Family::model_type);
  return family != std::end(kFamilies) &&
         std::ranges::any_of(family->old_buffers,
                             [&](std::string_view end) { return name.ends_with(end); });
}

HeadKind head_in_files(const Family& family, HeadKind head) {
  if (head != HeadKind::prompt) return head;
  return family.is_decoder ? HeadKind::causal_lm : HeadKind::masked_lm;
}

ModelTable make_table(const JsonReader& config, const TableOptions& options) {
  const Family& family = family_of(config);
  check_head(family, options.head);
  refuse_quantised(config);
  ModelTable model = make_in_pieces(options.piece_elements_max, [&](const VocabularyCut& cut) {
    TableOptions its = options;
    its.cut = cut;
    return family.table(config, its);
  });
  if (const auto unknown = unknown_keys(config); !unknown.empty())
    config.at(unknown.front())
        .fail("may change what the model computes, and Ferry does not know it",
              "if it does not, remove the key from config.json; else this model is not trained by "
              "this version");
  return model;
}

std::string architecture_of(std::string_view stem, HeadKind head) {
  constexpr std::string_view kSuffixes[] = {"ForSequenceClassification", "ForMaskedLM",
                                            "ForTokenClassification", "ForQuestionAnswering",
                                            "ForCausalLM"};
  return std::string(stem) + std::string(kSuffixes[static_cast<size_t>(head)]);
}

std::string_view name_of(HeadKind head) {
  using enum HeadKind;
  switch (head) {
    case classification:
      return "classification";
    case masked_lm:
      return "mlm";
    case token_classification:
      return "token-classification";
    case question_answering:
      return "question-answering";
    case causal_lm:
      return "causal-lm";
    case prompt:
      return "prompt-classification";
  }
  return "?";
}

}  // namespace ferry
