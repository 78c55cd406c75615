#include <ATen/ops/arange.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "models/ops/label_words/label_words_op.h"
#include "models/ops/run.h"

namespace ferry::ops {
namespace {

/** The words on the device of the pass. What is made here is small: LibTorch holds it. */
class Words {
 public:
  Words(const LabelWords& labels, const at::Tensor& like) : tokens_(labels.tokens) {
    std::vector<int64_t> ids;  // each once
    for (const auto& words : labels.words)
      for (const auto& word : words)
        ids.insert(ids.end(), word.begin(), word.end());
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    const auto n_labels = std::ssize(labels.words);
    int64_t n_words = 0;
    for (const auto& words : labels.words)
      n_words += std::ssize(words);
    at::Tensor of_words = at::zeros({std::ssize(ids), n_words}, at::kFloat),
               of_labels = at::zeros({n_words, n_labels}, at::kFloat);
    int64_t w = 0;
    for (int64_t label = 0; label < n_labels; ++label) {
      const auto& words = labels.words[static_cast<size_t>(label)];
      for (const auto& word : words) {
        const size_t n = tokens_ == WordTokens::first ? 1 : word.size();
        std::vector<int64_t>& places = places_.emplace_back();
        for (size_t i = 0; i < n; ++i) {
          const int64_t place = std::ranges::lower_bound(ids, word[i]) - ids.begin();
          places.push_back(place);
          of_words.data_ptr<float>()[place * n_words + w] += 1.0f / static_cast<float>(n);
        }
        of_labels.data_ptr<float>()[w * n_labels + label] = 1.0f / static_cast<float>(words.size());
        ++w;
      }
    }
    ids_ = at::tensor(ids, at::kLong).to(like.device());
    of_words_ = of_words.to(like.device());
    of_labels_ = of_labels.to(like.device());
  }

  const at::Tensor& ids() const { return ids_; }              // (tokens)
  const at::Tensor& of_labels() const { return of_labels_; }  // (words, labels)

  /** (rows, tokens) to (rows, words). */
  at::Tensor of_words(const at::Tensor& logits) const {
    if (tokens_ != WordTokens::max) return at::mm(logits, of_words_);
    at::Tensor out = at::zeros({logits.size(0), std::ssize(places_)}, logits.options());
    for (size_t w = 0; w < places_.size(); ++w)
      out.select(1, static_cast<int64_t>(w))
          .copy_(std::get<0>(logits.index_select(1, places_of(w, logits)).max(1)));
    return out;
  }
  /** The gradient of these logits by those of the words. */
  at::Tensor of_tokens(const at::Tensor& d_words, const at::Tensor& logits) const {
    if (tokens_ != WordTokens::max) return at::mm(d_words, of_words_.t());
    at::Tensor out = at::zeros(logits.sizes(), logits.options());
    for (size_t w = 0; w < places_.size(); ++w) {
      const at::Tensor places = places_of(w, logits);
      const at::Tensor best = std::get<1>(logits.index_select(1, places).max(1));
      out.scatter_add_(1, places.index_select(0, best).unsqueeze(1),
                       d_words.narrow(1, static_cast<int64_t>(w), 1));
    }
    return out;
  }

 private:
  at::Tensor places_of(size_t word, const at::Tensor& like) const {
    return at::tensor(places_[word], at::kLong).to(like.device());
  }

  WordTokens tokens_;
  std::vector<std::vector<int64_t>> places_;  ///< of each word's tokens among the ids
  at::Tensor ids_, of_words_, of_labels_;
};

/** The tokens' logits (rows, tokens) in fp32. */
at::Tensor logits_of(const at::Tensor& t,
                     const at::Tensor& rows,
                     const at::Tensor& bias,
                     const at::Tensor& ids,
                     const LogitsRule& rule) {
  at::Tensor logits = at::mm(t.to(at::kFloat), rows.t());
  if (bias.defined()) logits.add_(bias.index_select(0, ids).to(at::kFloat));
  if (rule.factor != 1) logits.mul_(rule.factor);
  if (rule.soft_cap > 0) logits.div_(rule.soft_cap).tanh_().mul_(rule.soft_cap);
  return logits;
}

}  // namespace

void run_label_words(const OpCall& c) {
  const auto& with = c.op.with<LabelWordsAttributes>();
  const auto [word, bias] = c.params<LabelWordsParams>();
  const Words words(with.labels, word);
  const at::Tensor rows = word->index_select(0, words.ids()).to(at::kFloat);  // (tokens, E)
  if (c.part == Part::forward) {
    const auto o = c.operands<LabelWordsValues>();
    const at::Tensor of_words =
        words.of_words(logits_of(o.t, rows, bias, words.ids(), with.rule));  // (n, words)
    o.logits->copy_(at::mm(of_words, words.of_labels()).sub_(at::logsumexp(of_words, 1, true)));
    return;
  }
  const auto o = c.operands<LabelWordsGrads>();
  const auto grads = c.grads<LabelWordsParams>();
  const at::Tensor logits = logits_of(o.t, rows, bias, words.ids(), with.rule);
  // The part that all labels lose alike does not count, since the rows of d_logits add up to 0.
  const at::Tensor d_words = at::mm(o.d_logits, words.of_labels().t());
  at::Tensor d_tokens = words.of_tokens(d_words, logits);
  if (with.rule.soft_cap > 0)
    d_tokens.mul_(logits.div(with.rule.soft_cap).square_().neg_().add_(1));
  if (with.rule.factor != 1) d_tokens.mul_(with.rule.factor);
  if (o.dt->defined()) o.dt->copy_(at::mm(d_tokens, rows));
  if (grads.word->defined()) {
    grads.word->zero_();
    grads.word->index_copy_(0, words.ids(),
                            at::mm(d_tokens.t(), o.t->to(at::kFloat)).to(grads.word->dtype()));
  }
  if (grads.bias->defined()) {
    grads.bias->zero_();
    grads.bias->index_copy_(0, words.ids(), d_tokens.sum(0).to(grads.bias->dtype()));
  }
}

}  // namespace ferry::ops
