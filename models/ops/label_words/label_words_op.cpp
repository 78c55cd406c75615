#include "models/ops/label_words/label_words_op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/ops/scratch_sizes.h"

namespace ferry::ops {
namespace {

int64_t n_tokens_of(const Op& op) {
  int64_t n = 0;
  for (const auto& words : op.with<LabelWordsAttributes>().labels.words)
    for (const auto& tokens : words)
      n += std::ssize(tokens);
  return n;
}

}  // namespace

const OpDef kLabelWords = {
    .name = "label_words",
    .values = LabelWordsValues<int>::kNames,
    .n_inputs = 1,
    .params = LabelWordsParams<int>::kNames,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<LabelWordsAttributes>();
          return fmt::format("words {} by {} factor {} soft_cap {}", with.labels.words,
                             static_cast<int>(with.labels.tokens), with.rule.factor,
                             with.rule.soft_cap);
        },
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<LabelWordsValues>(op);
          const int d_logits = p.take_grad(v.logits), t = p.data(v.t);
          const int dt = p.grad_place(v.t, /*adds=*/false).place;
          p.call(p.op(), Part::backward,
                 LabelWordsGrads<int>{.d_logits = d_logits, .t = t, .dt = dt});
        },
    // LibTorch holds copies in fp32 of the rows and of the words' rows with their gradients, and
    // logits of tokens, words and labels.
    .scratch = [](const OpCase& c, Part) -> ScratchNeed {
      constexpr int64_t kCopies = 4, kLogits = 12, kSmall = 64;
      const auto v = values_of<LabelWordsValues>(c.op);
      const int64_t rows = c.rows(v.t), width = c.columns(v.t), words = n_tokens_of(c.op),
                    labels = c.columns(v.logits);
      return {.library_bytes = kCopies * stacked_bytes((rows + words) * width * kF32_bytes) +
                               kLogits * stacked_bytes(rows * (2 * words + labels) * kF32_bytes) +
                               2 * stacked_bytes(words * (words + labels) * kF32_bytes) +
                               kSmall * stacked_bytes(words * kF32_bytes)};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const auto v = values_of<LabelWordsValues>(c.op);
          const bool is_backward = call.part == Part::backward;
          const int64_t rows = c.rows(v.t), width = c.columns(v.t), words = n_tokens_of(c.op);
          work.add_linear(false, rows, width, words);  // the backward makes the logits again
          if (is_backward) work.add_linear(true, rows, width, words);
          // The gradient of the words' table is cleared.
          if (is_backward) work.memory_bytes += c.compute_bytes(c.target.vocab_size * width);
          work.n_kernels += is_backward ? 20 : 12;
          work.n_operations += is_backward ? 20 : 12;
        },
};

}  // namespace ferry::ops
