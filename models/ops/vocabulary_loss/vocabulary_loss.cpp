#include "models/ops/vocabulary_loss/vocabulary_loss.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/sum.h>

#include <algorithm>

#include "models/ops/all_reduce/all_reduce.h"
#include "models/ops/cross_entropy/cross_entropy.h"
#include "models/ops/cross_entropy/logits_state.h"
#include "models/ops/dispatch.h"
#include "models/ops/linear/linear.h"
#include "models/ops/rows/rows.h"
#include "models/ops/scratch_sizes.h"
#include "simd/kernels.h"

namespace ferry::ops {
namespace {

/** Calls work(first word, words) for each chunk of the vocabulary. */
template <typename Work>
void for_chunks(int64_t vocab, const Work& work) {
  for (int64_t first = 0; first < vocab; first += kVocabChunk)
    work(first, std::min(kVocabChunk, vocab - first));
}

/** Room for a chunk's logits: dense (rows, n) at the same place whatever n <= kVocabChunk is. */
at::Tensor chunk_of(const at::Tensor& room, int64_t rows, int64_t n) {
  return room.narrow(0, 0, rows * n).view({rows, n});
}
at::Tensor take_room(int64_t rows, int64_t vocab, at::ScalarType type, Scratch& scratch) {
  return scratch.take({rows * std::min(vocab, kVocabChunk)}, type);
}

/** Rows [first, first + n) of a parameter or gradient that may be undefined. */
at::Tensor part_of(const at::Tensor& x, int64_t first, int64_t n) {
  return x.defined() ? x.narrow(0, first, n) : x;
}

/** The logits of words [at, at + n) of a range, in `room`. */
at::Tensor logits_of(
    const at::Tensor& t, const WordRange& words, int64_t at, int64_t n, const at::Tensor& room) {
  at::Tensor chunk = chunk_of(room, t.size(0), n);
  linear_forward(t, words.word.narrow(0, at, n), part_of(words.bias, at, n), chunk,
                 words.rule.factor);
  if (words.rule.soft_cap > 0) cap_logits(chunk, words.rule.soft_cap);
  return chunk;
}

/** sum += x, which has the compute type. */
void add_to(at::Tensor& sum, const at::Tensor& x) {
  if (on_cuda(sum)) {
    sum.add_(x);
  } else {
    simd::accumulate(floats_of(sum), data_of(x), dtype_of(x), x.numel());
  }
}

/** The state of the rows by the words of all ranks. `mine` knows this rank's words. */
LogitsState of_all_ranks(SharingRanks& ranks, const LogitsState& mine, Scratch& scratch) {
  const int64_t rows = mine.sum.size(0);
  LogitsState all = LogitsState::take(rows, scratch);
  at::Tensor four = scratch.take({4, rows}, at::kFloat);
  four.select(0, 0).copy_(mine.largest);
  four.select(0, 1).copy_(mine.sum_exp);
  four.select(0, 2).copy_(mine.sum);
  four.select(0, 3).copy_(mine.label_logit);
  const at::Tensor of_ranks = gather(ranks, four, scratch);  // (ranks, 4, rows)
  at::Tensor largest = of_ranks.select(1, 0);
  at::amax_out(all.largest, largest, /*dim=*/0);
  largest.sub_(all.largest).exp_().mul_(of_ranks.select(1, 1));
  at::sum_out(all.sum_exp, largest, /*dim=*/0);
  at::sum_out(all.sum, of_ranks.select(1, 2), /*dim=*/0);
  at::sum_out(all.label_logit, of_ranks.select(1, 3), /*dim=*/0);
  return all;
}

}  // namespace

void take_words(const at::Tensor& t,
                const WordRange& words,
                const at::Tensor& labels,
                LogitsState& state,
                at::Tensor& logits,
                Scratch& scratch) {
  const ScratchScope scope(scratch);
  const int64_t n_words = words.word.size(0);
  const at::Tensor room = take_room(t.size(0), n_words, t.scalar_type(), scratch);
  for_chunks(n_words, [&](int64_t at, int64_t n) {
    const at::Tensor chunk = logits_of(t, words, at, n, room);
    const int64_t first = words.first + at;
    if (logits.defined()) logits.narrow(1, first, n).copy_(chunk);
    take_logits(chunk, first, labels, state);
  });
}

void end_words(const LogitsState& state,
               const WordRange& words,
               const at::Tensor& labels,
               float smoothing,
               float weight,
               at::Tensor& lse,
               at::Tensor& loss,
               Scratch& scratch,
               SharingRanks* ranks,
               const TakeFound& take) {
  const ScratchScope scope(scratch);
  const LogitsState all = ranks ? of_all_ranks(*ranks, state, scratch) : state;
  at::Tensor none;
  cross_entropy_forward(all, labels, words.vocab, smoothing, weight, lse, take ? none : loss);
  if (take) take(all, lse);
}

void vocabulary_loss_forward(const at::Tensor& t,
                             const WordRange& words,
                             const at::Tensor& labels,
                             float smoothing,
                             float weight,
                             at::Tensor& lse,
                             at::Tensor& loss,
                             at::Tensor& logits,
                             Scratch& scratch,
                             SharingRanks* ranks,
                             const TakeFound& take) {
  const ScratchScope scope(scratch);
  LogitsState state = LogitsState::take(t.size(0), scratch);
  take_words(t, words, labels, state, logits, scratch);
  end_words(state, words, labels, smoothing, weight, lse, loss, scratch, ranks, take);
}

void words_backward(const at::Tensor& t,
                    const WordRange& words,
                    const at::Tensor& labels,
                    const at::Tensor& lse,
                    float smoothing,
                    float factor,
                    at::Tensor& sum,
                    at::Tensor& dword,
                    const at::Tensor& dbias,
                    Scratch& scratch,
                    const at::Tensor* row_weights) {
  const ScratchScope scope(scratch);
  const int64_t n_words = words.word.size(0);
  const bool is_f32 = t.scalar_type() == at::kFloat;
  if (words.are_first && (!is_f32 || n_words == 0)) sum.zero_();
  at::Tensor part = is_f32 ? at::Tensor() : scratch.take(t.sizes(), t.scalar_type());
  const at::Tensor room = take_room(t.size(0), n_words, t.scalar_type(), scratch);
  for_chunks(n_words, [&](int64_t at, int64_t n) {
    at::Tensor chunk = logits_of(t, words, at, n, room);
    const at::Tensor its_words = words.word.narrow(0, at, n);
    const int64_t first = words.first + at;
    cross_entropy_backward(chunk, first, labels, lse, words.vocab, smoothing,
                           factor * words.rule.factor, words.rule.soft_cap, row_weights);
    at::Tensor d_words = part_of(dword, at, n);
    linear_backward_weight(chunk, t, d_words);
    if (dbias.defined()) column_sum(chunk, part_of(dbias, at, n), scratch);
    if (!is_f32) {
      linear_backward_input(chunk, its_words, part);
      add_to(sum, part);
    } else if (words.are_first && at == 0) {
      linear_backward_input(chunk, its_words, sum);
    } else {
      linear_backward_input_add(chunk, its_words, sum, sum);
    }
  });
}

void vocabulary_loss_backward(const at::Tensor& t,
                              const WordRange& words,
                              const at::Tensor& labels,
                              const at::Tensor& lse,
                              float smoothing,
                              float factor,
                              at::Tensor& dt,
                              at::Tensor& dword,
                              const at::Tensor& dbias,
                              Scratch& scratch,
                              SharingRanks* ranks,
                              const at::Tensor* row_weights) {
  const ScratchScope scope(scratch);
  const bool is_f32 = t.scalar_type() == at::kFloat;
  at::Tensor sum = is_f32 ? dt : scratch.take(t.sizes(), at::kFloat);
  words_backward(t, words, labels, lse, smoothing, factor, sum, dword, dbias, scratch, row_weights);
  if (ranks) all_reduce(*ranks, sum, sum, scratch);
  if (!is_f32) dt.copy_(sum);
}

}  // namespace ferry::ops
