// BERT's heads that give logits of every token, forward and backward with their losses: token
// classification and question answering. transformers builds both without a pooler.

#include "models/bert/bert_blocks.h"
#include "models/bert/bert_table.h"
#include "models/ops/fused.h"
#include "models/ops/linear.h"
#include "models/ops/losses.h"

namespace ferry::bert {
namespace {

/** Dropout, classifier. Tokens without a label, the dummy tail's among them, get logits but no
 * loss. */
class TokenClassifier final : public Block {
 public:
  explicit TokenClassifier(const BlockSettings& settings) : settings_(settings) {}

  void forward(const RandomKey& key,
               const BatchTensors& batch,
               BlockMemory& memory,
               const at::Tensor& x,
               at::Tensor&,
               at::Tensor& loss,
               at::Tensor& logits_out) override {
    using namespace token_classifier;
    const auto& p = memory.params;
    Scratch& scratch = *memory.scratch;
    at::Tensor& logits = memory.saved[token_classifier::logits];
    {
      const ScratchScope scope(scratch);
      const at::Tensor input = dropped_out(key, x, scratch);
      ops::linear_forward_f32(input, p[weight], p[bias], logits, scratch);
    }
    if (logits_out.defined()) logits_out.copy_(logits);
    if (loss.defined())
      ops::label_cross_entropy_forward(logits, batch.labels, batch.label_smoothing,
                                       batch.loss_weight, loss, scratch);
  }

  void backward(const RandomKey& key,
                const BatchTensors& batch,
                BlockMemory& memory,
                const at::Tensor& x,
                at::Tensor&,
                at::Tensor& dx) override {
    using namespace token_classifier;
    const auto& p = memory.params;
    auto& d = memory.grads;
    Scratch& scratch = *memory.scratch;
    const at::Tensor& logits = memory.saved[token_classifier::logits];
    const at::ScalarType type = x.scalar_type();
    at::Tensor d_logits = scratch.take(logits.sizes(), at::kFloat);
    at::Tensor rounded = type == at::kFloat ? d_logits : scratch.take(logits.sizes(), type);

    ops::label_cross_entropy_backward(logits, batch.labels, batch.label_smoothing,
                                      batch.loss_weight * batch.grad_scale, d_logits, scratch);
    if (type != at::kFloat) rounded.copy_(d_logits);
    {
      const ScratchScope scope(scratch);
      ops::linear_backward_weight(rounded, dropped_out(key, x, scratch), d[weight]);
    }
    ops::column_sum(rounded, d[bias], scratch);
    ops::linear_backward_input(rounded, p[weight], dx);
    if (dropout(key).p > 0) ops::dropout(dx, dropout(key), dx);
  }

 private:
  ops::Dropout dropout(const RandomKey& key) const {
    return key.training ? ops::Dropout{settings_.head_dropout, key.of(head_dropout)}
                        : ops::Dropout{};
  }

  /** The classifier's input: out of the scratch, or x itself without dropout. */
  at::Tensor dropped_out(const RandomKey& key, const at::Tensor& x, Scratch& scratch) const {
    if (dropout(key).p == 0) return x;
    at::Tensor dropped = scratch.take(x.sizes(), x.scalar_type());
    ops::dropout(x, dropout(key), dropped);
    return dropped;
  }

  BlockSettings settings_;
};

/** One linear map to two logits a token, without dropout. Dummy sequences get logits but no loss.
 */
class QuestionAnswering final : public Block {
 public:
  void forward(const RandomKey&,
               const BatchTensors& batch,
               BlockMemory& memory,
               const at::Tensor& x,
               at::Tensor&,
               at::Tensor& loss,
               at::Tensor& logits_out) override {
    using namespace question_answering;
    const auto& p = memory.params;
    Scratch& scratch = *memory.scratch;
    at::Tensor& logits = memory.saved[question_answering::logits];
    {
      const ScratchScope scope(scratch);
      at::Tensor by_token = scratch.take({x.size(0), 2}, at::kFloat);
      ops::linear_forward_f32(x, p[weight], p[bias], by_token, scratch);
      logits.copy_(by_token.t());
      if (logits_out.defined()) logits_out.copy_(by_token);
    }
    at::Tensor lse = lse_of(batch, memory);
    ops::span_loss_forward(logits, batch, lse, loss, scratch);
  }

  void backward(const RandomKey&,
                const BatchTensors& batch,
                BlockMemory& memory,
                const at::Tensor& x,
                at::Tensor&,
                at::Tensor& dx) override {
    using namespace question_answering;
    auto& d = memory.grads;
    Scratch& scratch = *memory.scratch;
    const at::Tensor& logits = memory.saved[question_answering::logits];
    at::Tensor by_token = scratch.take({x.size(0), 2}, x.scalar_type());
    {
      const ScratchScope scope(scratch);
      at::Tensor d_logits = scratch.take(logits.sizes(), at::kFloat);
      ops::span_loss_backward(logits, batch, lse_of(batch, memory), d_logits);
      by_token.copy_(d_logits.t());
    }
    ops::linear_backward_weight(by_token, x, d[weight]);
    // A bias adds the same to all of a sequence's logits, which softmax does not see: its gradient
    // is zero, and a sum would give it rounding errors that AdamW blows up to full steps.
    d[bias].zero_();
    ops::linear_backward_input(by_token, memory.params[weight], dx);
  }

 private:
  static at::Tensor lse_of(const BatchTensors& batch, const BlockMemory& memory) {
    return memory.saved[question_answering::lse].narrow(0, 0, batch.n_seqs_real);
  }
};

}  // namespace

std::unique_ptr<Block> make_token_classifier(const BlockSettings& settings) {
  return std::make_unique<TokenClassifier>(settings);
}

std::unique_ptr<Block> make_question_answering() {
  return std::make_unique<QuestionAnswering>();
}

}  // namespace ferry::bert
