#include "models/blocks/token_heads.h"

namespace ferry {

void end_in_token_labels(
    BlockBuilder& b, const ModelTable& model, ValueId x, const std::string& hf, bool has_bias) {
  const int64_t W = b.columns_of(x), L = model.n_labels;
  const ParamId weight =
      b.matrix("classifier.weight", L, W, {.name = hf + ".weight", .optional = true});
  const ParamId bias =
      has_bias ? b.bias("classifier.bias", L, {.name = hf + ".bias", .optional = true}) : kNone;
  b.label_loss(b.logits(x, weight, bias));  // (T, L) fp32
  b.end();
}

void end_in_answer_spans(BlockBuilder& b, const ModelTable& model, ValueId x) {
  const int64_t W = b.columns_of(x), L = model.n_labels;
  const ParamId weight =
      b.matrix("qa_outputs.weight", L, W, {.name = "qa_outputs.weight", .optional = true});
  const ParamId bias = b.bias("qa_outputs.bias", L, {.name = "qa_outputs.bias", .optional = true});
  b.span_loss(b.logits(x, weight, bias, /*by_column=*/true));  // (2, T) fp32
  b.end();
}

}  // namespace ferry
