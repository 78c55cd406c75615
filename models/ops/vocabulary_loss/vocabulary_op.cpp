#include "models/ops/vocabulary_loss/vocabulary_op.h"

#include <fmt/format.h>

#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

namespace {

ValueId rows_of_head(const OpCase& c) {
  return c.op.in[0];
}

/** Bytes of the labels of the rows that have one. */
int64_t label_bytes(const OpCase& c) {
  const ValueId t = rows_of_head(c);
  if (c.program.value(t).rows.kind != RowKind::labelled) return 0;
  return stacked_bytes(c.rows(t) * static_cast<int64_t>(sizeof(int32_t)));
}

bool has_bias(const OpCase& c) {
  return params_of<VocabularyParams>(c.op).bias != kNone;
}

/** Room for what all ranks that share the words have found: states of the rows, or parts of dt. */
int64_t bytes_of_ranks(const OpCase& c, Part part) {
  if (c.target.sharing.tp_size == 1) return 0;
  constexpr int64_t kStates = 4;
  const int64_t row_bytes = c.rows(rows_of_head(c)) * kF32_bytes;
  if (part == Part::forward)
    return stacked_bytes(c.n_sharing() * kStates * row_bytes, kStates * row_bytes) +
           kStates * stacked_bytes(row_bytes);
  return stacked_bytes(c.n_sharing() * row_bytes * c.columns(rows_of_head(c)));
}

ScratchNeed with_labels(const OpCase& c, Part part, const ScratchNeed& need) {
  return {.forward_bytes = label_bytes(c) + bytes_of_ranks(c, part) +
                           (part == Part::forward ? need.forward_bytes : need.backward_bytes),
          .library_bytes = need.library_bytes};
}

/** Adds the work on the logits of so many words. */
void add_work_of_words(BlockWork& work, const OpCase& c, const Call& call, int64_t n_all_words) {
  const int n_ranks = c.target.sharing.tp_size;
  const int64_t n_words = (n_all_words + n_ranks - 1) / n_ranks;
  const bool is_backward = call.part == Part::backward;
  const ValueId t = rows_of_head(c);
  const int64_t rows = c.worked_rows(t), width = c.columns(t);
  const auto n_chunks = static_cast<int>((n_words + kVocabChunk - 1) / kVocabChunk);
  // The backward pass recomputes a chunk's logits, too. Logits are written and read; or they are
  // recomputed, turned into their gradient and read twice.
  if (is_backward) work.add_linear(false, rows, width, n_words);
  work.add_linear(is_backward, rows, width, n_words);
  const int64_t dt_bytes = rows * width * kF32_bytes;
  if (is_backward) work.exchanged_bytes += (n_ranks - 1) * dt_bytes;
  const bool is_capped =
      c.op.with<VocabularyAttributes>().rule.soft_cap > 0;  // which reads and writes them once more
  work.memory_bytes +=
      ((is_backward ? 5 : 2) + (is_capped ? 2 : 0)) * c.compute_bytes(rows * n_words);
  if (is_capped) work.n_kernels += n_chunks;
  const int n_operations = n_chunks * (is_backward ? 2 : 1) + 8;
  work.n_operations += n_operations;
  work.n_kernels += n_operations + n_chunks * (is_backward ? 3 : 1);
}

std::string vocabulary_attributes(const Op& op) {
  const auto& with = op.with<VocabularyAttributes>();
  const float factor = with.rule.factor;
  return fmt::format("{}soft_cap {} words {} from {} piece {} of {}",
                     factor == 1 ? "" : fmt::format("factor {} ", factor), with.rule.soft_cap,
                     with.n_table_rows, with.first_word, with.piece.index, with.piece.n_pieces);
}

}  // namespace

const OpDef kVocabularyLoss = {
    .name = "vocabulary_loss",
    .values = VocabularyValues<int>::kNames,
    .n_inputs = 1,
    .params = VocabularyParams<int>::kNames,
    .attributes = vocabulary_attributes,
    .states = [](const OpCase& c) -> std::vector<SavedSpec> {
      return {{"lse", {c.rows(rows_of_head(c))}, DType::f32}};
    },
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<VocabularyValues>(op);
          VocabularyGrads<int> places = {.t = p.data(v.t), .dt = kNone};
          std::vector<int> states = p.states(p.op());
          places.dt = p.grad_place(v.t, /*adds=*/false).place;
          p.call(p.op(), Part::backward, places, std::move(states));
        },
    .scratch =
        [](const OpCase& c, Part part) {
          const ValueId t = rows_of_head(c);
          return with_labels(c, part,
                             vocabulary_scratch(c.target.compute, c.rows(t), c.target.vocab_size,
                                                c.columns(t), c.target.is_cuda(), has_bias(c)));
        },
    .add_work = [](BlockWork& work,
                   const OpCase& c,
                   const Call& call) { add_work_of_words(work, c, call, c.target.vocab_size); },
};

const OpDef kVocabularyPiece = {
    .name = "vocabulary_piece",
    .values = VocabularyPieceValues<int>::kNames,
    .n_inputs = 2,
    .params = VocabularyParams<int>::kNames,
    .attributes = vocabulary_attributes,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<VocabularyPieceValues>(op);
          VocabularyPieceGrads<int> places = {
              .t = p.data(v.t), .lse = p.data(v.lse), .before = kNone, .dt = kNone};
          const auto grad = p.grad_place(v.t, /*adds=*/true);
          places.before = grad.sum;
          places.dt = grad.place;
          p.call(p.op(), Part::backward, places);
        },
    .scratch =
        [](const OpCase& c, Part part) {
          const ValueId t = rows_of_head(c);
          const int64_t n_words = c.op.with<VocabularyAttributes>().n_table_rows;
          return with_labels(
              c, part,
              vocabulary_piece_scratch(c.target.compute, c.rows(t), n_words, c.columns(t),
                                       c.target.is_cuda(), has_bias(c)));
        },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          add_work_of_words(work, c, call, c.op.with<VocabularyAttributes>().n_table_rows);
        },
};

}  // namespace ferry::ops
